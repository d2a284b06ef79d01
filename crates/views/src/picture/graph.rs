//! A graph of tasks: a column for each wave, dependencies as curves behind the boxes.

use std::collections::HashMap;

use super::{Anchor, Frame, Ink, Picture, Point, Shape, Stroke, fit, svg};
use crate::view::task_tone;
use descartes_kernel::tasks::{PlannedBlock, TasksState};
use descartes_plans::graph::render::{arrows, drawn_joints, status_of};
use descartes_plans::graph::{Plan, TaskId, TaskIx, TaskStatus};

#[derive(Clone, Debug, PartialEq)]
pub struct GraphTask {
    pub id: TaskId,
    pub title: String,
    /// Its wave, from 1; 0 is a task of another tag.
    pub wave: u32,
    pub status: TaskStatus,
    /// What it is drawn behind.
    pub after: Vec<TaskId>,
    /// Blocks that it is drawn behind, by position.
    pub after_blocks: Vec<u32>,
}

impl GraphTask {
    /// The tasks of a plan, with the status of each by its position, and the blocks of the plan.
    pub fn of_plan(plan: &Plan, statuses: &[TaskStatus]) -> (Vec<Self>, Vec<PlannedBlock>) {
        let graph = plan.graph();
        let drawn = drawn_joints(plan);
        let ids = |tasks: &[TaskIx]| -> Vec<TaskId> {
            tasks.iter().map(|ix| graph.node(*ix).id.clone()).collect()
        };
        let blocks = drawn.iter().map(|joint| PlannedBlock {
            tasks: ids(&graph.before_joint(*joint)),
            blocks: Vec::new(),
        });
        let numbers: HashMap<u32, u32> = drawn.iter().copied().zip(0..).collect();
        let task = |ix: TaskIx| {
            let node = graph.node(ix);
            let (before, joints) = arrows(plan, &drawn, ix);
            let joints = joints.iter().filter_map(|joint| numbers.get(joint));
            Self {
                id: node.id.clone(),
                title: node.title.clone(),
                wave: plan.wave_of(ix),
                status: status_of(plan, statuses, ix),
                after: ids(&before),
                after_blocks: joints.copied().collect(),
            }
        };
        let all = 0..graph.nodes().len() as TaskIx;
        let work = plan.waves().iter().flatten().copied();
        let others = all.filter(|ix| !graph.is_work(*ix));
        let tasks = work.chain(others).map(task).collect();
        (tasks, blocks.collect())
    }

    /// The tasks of a loop, as its journal tells them.
    pub fn of_loop(tasks: &TasksState) -> Vec<Self> {
        let task = |id: &TaskId| {
            let entry = tasks.tasks.get(id)?;
            Some(Self {
                id: id.clone(),
                title: entry.title.clone(),
                wave: entry.wave,
                status: entry.status,
                after: entry.after.clone(),
                after_blocks: entry.after_blocks.clone(),
            })
        };
        tasks.order.iter().filter_map(task).collect()
    }
}

const BOX_WIDTH: f32 = 220.0;
const BOX_HEIGHT: f32 = 44.0;
const COLUMN: f32 = 290.0;
const ROW: f32 = 60.0;
const MARGIN: f32 = 24.0;
const HEAD: f32 = 40.0;
/// From the boxes to the point where the lines of a block meet.
const KNOT: f32 = 24.0;

/// An image of a plan that needs nothing from outside; titles are escaped.
pub fn plan_svg(plan: &Plan, statuses: &[TaskStatus]) -> String {
    let (tasks, blocks) = GraphTask::of_plan(plan, statuses);
    svg(&graph(&tasks, &blocks), Frame::Document)
}

/// The picture, in the order of the tasks within each wave.
pub fn graph(tasks: &[GraphTask], blocks: &[PlannedBlock]) -> Picture {
    let places = places(tasks);
    let most = |of: fn(&(u32, u32)) -> u32| places.iter().map(of).max().unwrap_or(0) as f32;
    let (columns, rows) = (most(|place| place.0), most(|place| place.1));
    let width = 2.0 * MARGIN + columns * COLUMN + BOX_WIDTH;
    let height = 2.0 * MARGIN + HEAD + rows * ROW + BOX_HEIGHT;
    let mut out = Picture::new("Tasks by wave", width, height);
    heads(tasks, &mut out);
    let by_id: HashMap<&TaskId, usize> = tasks.iter().map(|task| &task.id).zip(0..).collect();
    let place_of = |id: &TaskId| by_id.get(id).map(|at| places[*at]);
    let knots = knots(blocks, place_of, &mut out);
    for (task, to) in tasks.iter().zip(&places) {
        let to = left_of(*to);
        let before = task.after.iter().filter_map(place_of).map(right_of);
        let blocks = task.after_blocks.iter();
        let blocks = blocks.filter_map(|block| knots.get(*block as usize).copied());
        for from in before.chain(blocks) {
            out.line(curve(from, to), Stroke::solid(Ink::Muted, 1.2));
        }
    }
    for (task, place) in tasks.iter().zip(&places) {
        task_box(task, corner(*place), &mut out);
    }
    out
}

/// Lines from the tasks of each block to one point behind them; answers the points.
fn knots(
    blocks: &[PlannedBlock],
    place_of: impl Fn(&TaskId) -> Option<(u32, u32)>,
    out: &mut Picture,
) -> Vec<Point> {
    let mut knots: Vec<Point> = Vec::new();
    for block in blocks {
        let tasks = block.tasks.iter().filter_map(&place_of).map(right_of);
        // A block is written after those that belong to it.
        let others = block.blocks.iter();
        let others = others.filter_map(|other| knots.get(*other as usize).copied());
        let from: Vec<Point> = tasks.chain(others).collect();
        let x = from.iter().map(|point| point.x).fold(0.0, f32::max) + KNOT;
        let y = from.iter().map(|point| point.y).sum::<f32>() / from.len().max(1) as f32;
        let knot = Point::new(x, y);
        for point in from {
            out.line(curve(point, knot), Stroke::solid(Ink::Muted, 1.2));
        }
        knots.push(knot);
    }
    knots
}

/// Column and row of every task.
fn places(tasks: &[GraphTask]) -> Vec<(u32, u32)> {
    let shift = first_wave(tasks);
    let mut filled: HashMap<u32, u32> = HashMap::new();
    let place = |task: &GraphTask| {
        let column = task.wave - shift;
        let row = filled.entry(column).or_default();
        *row += 1;
        (column, *row - 1)
    };
    tasks.iter().map(place).collect()
}

/// 1 where the first wave is the first column, 0 where other tags' tasks come before it.
fn first_wave(tasks: &[GraphTask]) -> u32 {
    tasks.iter().map(|task| task.wave).min().unwrap_or(1)
}

fn heads(tasks: &[GraphTask], out: &mut Picture) {
    let shift = first_wave(tasks);
    let last = tasks.iter().map(|task| task.wave).max().unwrap_or(0);
    for wave in shift.max(1)..=last {
        let x = MARGIN + (wave - shift) as f32 * COLUMN;
        out.heading(Point::new(x, MARGIN + 16.0), format!("Wave {wave}"));
    }
}

fn corner((column, row): (u32, u32)) -> Point {
    Point::new(
        MARGIN + column as f32 * COLUMN,
        MARGIN + HEAD + row as f32 * ROW,
    )
}

/// The middle of a box's right side.
fn right_of(place: (u32, u32)) -> Point {
    let corner = corner(place);
    Point::new(corner.x + BOX_WIDTH, corner.y + BOX_HEIGHT / 2.0)
}

/// The middle of a box's left side.
fn left_of(place: (u32, u32)) -> Point {
    let corner = corner(place);
    Point::new(corner.x, corner.y + BOX_HEIGHT / 2.0)
}

/// From one point to another, as a line of short pieces.
fn curve(start: Point, end: Point) -> Vec<Point> {
    const PIECES: u8 = 16;
    let bend = 36.0;
    let cubic = |a: f32, b: f32, c: f32, d: f32, t: f32| {
        let u = 1.0 - t;
        u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d
    };
    let point = |piece: u8| {
        let t = f32::from(piece) / f32::from(PIECES);
        Point::new(
            cubic(start.x, start.x + bend, end.x - bend, end.x, t),
            cubic(start.y, start.y, end.y, end.y, t),
        )
    };
    (0..=PIECES).map(point).collect()
}

fn task_box(task: &GraphTask, at: Point, out: &mut Picture) {
    let (edge, ground) = task_tone(task.status).inks();
    let stroke = match task.wave {
        0 => Stroke::dashed(edge, 1.0),
        _ => Stroke::solid(edge, 1.0),
    };
    out.shapes.push(Shape::Rect {
        at,
        width: BOX_WIDTH,
        height: BOX_HEIGHT,
        radius: 6.0,
        fill: Some(ground),
        stroke: Some(stroke),
        tip: Some(format!("{}: {} [{}]", task.id, task.title, task.status)),
    });
    let name = format!("{} · {}", fit(&task.id, 110.0), task.status);
    out.heading(Point::new(at.x + 10.0, at.y + 18.0), name);
    let place = Point::new(at.x + 10.0, at.y + 35.0);
    let title = fit(&task.title, BOX_WIDTH - 14.0);
    out.text(place, title, Ink::Text, Anchor::Start);
}
