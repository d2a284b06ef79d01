//! A display that nobody sees, and a person's hands and eyes on it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use descartes_testkit::{process, wait};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::lab::Trouble;
use crate::shell::root;

/// Between two looks at the screen.
const BLINK: Duration = Duration::from_millis(4);
/// Longer than the window needs for anything, on any machine.
const LONG: Duration = Duration::from_secs(60);
/// Nothing more comes after so long without a change.
const REST: Duration = Duration::from_millis(400);
const WIDTH: u64 = 1180;
const HEIGHT: u64 = 780;

/// An X server whose screen is a file.
pub struct Screen {
    server: Child,
    /// Its name, for `DISPLAY`.
    pub name: String,
    frame: File,
    layout: Layout,
    _folder: TempDir,
}

/// Where pixels stand in the file (an X window dump).
#[derive(Clone, Copy, Debug)]
struct Layout {
    begin: u64,
    stride: u64,
}

/// A part of the screen.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub x: u64,
    pub y: u64,
    pub width: u64,
    pub height: u64,
}

/// All of the window.
pub const WHOLE: Part = Part {
    x: 0,
    y: 0,
    width: WIDTH,
    height: HEIGHT,
};

impl Screen {
    pub fn open() -> Result<Self, Trouble> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let mut server = Command::new("Xvfb")
            // Without the flag it begins anew, and turns clients away, when the last one leaves.
            .args(["-noreset", "-displayfd", "1", "-nolisten", "tcp"])
            // A pointer on the screen is put back a while after what is under it was drawn.
            .args(["-nocursor", "-fbdir"])
            .arg(folder.path())
            .args(["-screen", "0", &format!("{WIDTH}x{HEIGHT}x24")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("Xvfb: {error}"))?;
        let mut line = String::new();
        if let Some(stdout) = server.stdout.take() {
            // It ends without a word where it cannot run.
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let path = folder.path().join("Xvfb_screen0");
        let opened = File::open(&path)
            .map_err(|error| format!("{}: {error}", path.display()))
            .and_then(|frame| Ok((Layout::read(&frame)?, frame)));
        match opened {
            Ok((layout, frame)) => Ok(Self {
                server,
                name: format!(":{}", line.trim()),
                frame,
                layout,
                _folder: folder,
            }),
            Err(trouble) => {
                drop(server.kill());
                drop(server.wait());
                Err(format!("Xvfb did not start: {trouble}"))
            }
        }
    }

    /// The pixels of a part, four bytes each: blue, green, red, and one that means nothing.
    pub fn pixels(&self, part: Part) -> Vec<u8> {
        let row = usize::try_from(part.width * 4).unwrap_or(0);
        let mut all = vec![0; row * usize::try_from(part.height).unwrap_or(0)];
        for (line, y) in all.chunks_mut(row.max(1)).zip(part.y..) {
            let at = self.layout.begin + y * self.layout.stride + part.x * 4;
            // A line that cannot be read stays black.
            let _ = self.frame.read_exact_at(line, at);
        }
        all
    }

    /// How bright a part is, from 0 to 255.
    pub fn brightness(&self, part: Part) -> u64 {
        let pixels = self.pixels(part);
        let colours = pixels.chunks(4).flat_map(|pixel| &pixel[..3]);
        let sum: u64 = colours.map(|byte| u64::from(*byte)).sum();
        sum / (pixels.len() as u64 / 4 * 3).max(1)
    }

    /// Waits until a part looks different from this.
    pub fn changes(&self, part: Part, from: &[u8]) -> Result<(), Trouble> {
        let mut look = || (self.pixels(part) != from).then_some(());
        wait::poll(LONG, &mut look).ok_or_else(|| "nothing changed on the screen".to_owned())
    }

    /// Waits until a part has come to rest; what it then looks like.
    pub fn quiet(&self, part: Part) -> Result<Vec<u8>, Trouble> {
        let begun = Instant::now();
        let (mut last, mut since) = (self.pixels(part), begun);
        while since.elapsed() < REST {
            thread::sleep(BLINK * 5);
            let now = self.pixels(part);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            if begun.elapsed() > LONG {
                return Err("the screen never came to rest".to_owned());
            }
        }
        Ok(last)
    }

    /// Waits until a part looks different from this and is at rest again.
    pub fn settles(&self, part: Part, from: &[u8]) -> Result<Vec<u8>, Trouble> {
        self.changes(part, from)?;
        self.quiet(part)
    }

    /// Milliseconds from an act until the last change that came of it on this part.
    pub fn until_rest(
        &self,
        part: Part,
        act: impl FnOnce() -> Result<(), Trouble>,
    ) -> Result<f64, Trouble> {
        let mut seen = self.quiet(part)?;
        let begun = Instant::now();
        act()?;
        let mut last: Option<Instant> = None;
        while last.is_none_or(|last| last.elapsed() < REST) {
            thread::sleep(BLINK);
            let now = self.pixels(part);
            if now != seen {
                (seen, last) = (now, Some(Instant::now()));
            }
            if begun.elapsed() > LONG {
                return Err("nothing changed on the screen, or it never came to rest".to_owned());
            }
        }
        let last = last.unwrap_or(begun);
        Ok((last - begun).as_secs_f64() * 1e3)
    }

    /// Does something as a person would.
    pub fn hands(&self, words: &[&str]) -> Result<String, Trouble> {
        let output = Command::new("xdotool")
            .args(words)
            .env("DISPLAY", &self.name)
            .output()
            .map_err(|error| format!("xdotool: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!(
                "xdotool {}: {}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }

    /// A click. The window must have seen the pointer come before the button is pressed.
    pub fn click(&self, (x, y): (u32, u32)) -> Result<(), Trouble> {
        self.point((x, y))?;
        self.hands(&["click", "1"]).map(drop)
    }

    /// Moves the pointer, and gives the window time to see it.
    pub fn point(&self, (x, y): (u32, u32)) -> Result<(), Trouble> {
        self.hands(&["mousemove", &x.to_string(), &y.to_string()])?;
        thread::sleep(Duration::from_millis(150));
        Ok(())
    }

    pub fn key(&self, key: &str) -> Result<(), Trouble> {
        self.hands(&["key", key]).map(drop)
    }

    pub fn types(&self, text: &str) -> Result<(), Trouble> {
        self.hands(&["type", "--delay", "15", text]).map(drop)
    }

    /// Waits for the window, and turns to it.
    pub fn window(&self) -> Result<String, Trouble> {
        let find = || {
            thread::sleep(Duration::from_millis(50));
            let words = ["search", "--onlyvisible", "--name", "descartes"];
            let found = self.hands(&words).ok()?;
            found.lines().next_back().map(str::to_owned)
        };
        let mut turn = || {
            let window = find()?;
            // One that is being set up may be gone or refuse.
            self.hands(&["windowfocus", "--sync", &window]).ok()?;
            Some(window)
        };
        wait::poll(LONG, &mut turn).ok_or_else(|| "no window came".to_owned())
    }

    /// Keeps a picture of the window in `target/measurements/gui/`.
    pub fn photograph(&self, name: &str) -> Result<(), Trouble> {
        let folder = root().join("target/measurements/gui");
        let path = folder.join(format!("{name}.png"));
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        fs::create_dir_all(&folder).map_err(|error| said(&error))?;
        let file = File::create(&path).map_err(|error| said(&error))?;
        let (width, height) = (WIDTH as u32, HEIGHT as u32);
        let mut picture = png::Encoder::new(BufWriter::new(file), width, height);
        picture.set_color(png::ColorType::Rgb);
        let colours: Vec<u8> = self
            .pixels(WHOLE)
            .chunks(4)
            .flat_map(|pixel| [pixel[2], pixel[1], pixel[0]])
            .collect();
        picture
            .write_header()
            .and_then(|mut writer| writer.write_image_data(&colours))
            .map_err(|error| said(&error))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Asked to go, it takes its socket and its lock away.
        process::send(self.server.id().cast_signed(), Signal::SIGTERM);
        let server = &mut self.server;
        let mut gone = || server.try_wait().ok().flatten();
        if wait::poll(Duration::from_secs(5), &mut gone).is_none() {
            drop(server.kill());
            drop(server.wait());
        }
    }
}

impl Layout {
    fn read(frame: &File) -> Result<Self, Trouble> {
        let mut header = [0; 100];
        frame
            .read_exact_at(&mut header, 0)
            .map_err(|error| format!("screen: {error}"))?;
        let field = |at: usize| {
            let bytes = header[at * 4..at * 4 + 4].try_into().unwrap_or_default();
            u64::from(u32::from_be_bytes(bytes))
        };
        // Header size, bits of a pixel, bytes of a line, entries of the colour table.
        if field(11) != 32 {
            return Err("the screen is not 32 bits deep".to_owned());
        }
        Ok(Self {
            begin: field(0) + field(19) * 12,
            stride: field(12),
        })
    }
}
