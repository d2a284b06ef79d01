//! The subscriber of `tracing`: one line of text for each event, with the spans that it happened in.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Debug, Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use descartes_text::display;
use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

use super::LogFile;
use super::filter::{Filter, short_target};
use super::stderr::StderrWriter;

/// A line is cut here: a path or an error of others may be long.
const LONGEST_LINE_BYTES: usize = 2048;

/// Where lines go.
pub(super) enum Output {
    File(LogFile),
    Stderr(StderrWriter),
}

struct SpanData {
    metadata: &'static Metadata<'static>,
    /// `loop{id=…}:run{run=7}`: this one, behind those that it was made in.
    path: String,
    handles: usize,
}

pub(super) struct LineSubscriber {
    filter: Filter,
    output: Output,
    spans: Mutex<HashMap<u64, SpanData>>,
    next: AtomicU64,
}

thread_local! {
    /// The spans that this thread is in, the innermost last.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn innermost() -> Option<u64> {
    ENTERED.with_borrow(|entered| entered.last().copied())
}

impl LineSubscriber {
    pub(super) fn new(filter: Filter, output: Output) -> Self {
        Self {
            filter,
            output,
            spans: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    fn spans(&self) -> MutexGuard<'_, HashMap<u64, SpanData>> {
        // A thread that panicked here left a map that can be used.
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path_of(&self, span: Option<u64>) -> String {
        let spans = self.spans();
        let span = span.and_then(|id| spans.get(&id));
        span.map(|span| span.path.clone()).unwrap_or_default()
    }

    fn write(&self, line: &str) {
        let mut line = display::one_line(line);
        if line.len() > LONGEST_LINE_BYTES {
            let end = line.floor_char_boundary(LONGEST_LINE_BYTES);
            line.truncate(end);
            line.push('…');
        }
        line.push('\n');
        match &self.output {
            Output::File(file) => file.lock().write(line.as_bytes()),
            Output::Stderr(writer) => writer.write(line.into_bytes()),
        }
    }
}

impl Subscriber for LineSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.filter.allows(metadata.target(), *metadata.level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter.most())
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let parent = match span.is_contextual() {
            true => innermost(),
            false => span.parent().map(Id::into_u64),
        };
        let mut path = self.path_of(parent);
        if !path.is_empty() {
            path.push(':');
        }
        let mut fields = Fields::default();
        span.record(&mut fields);
        path.push_str(span.metadata().name());
        path.push('{');
        path.push_str(fields.text.trim_start());
        path.push('}');
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let data = SpanData {
            metadata: span.metadata(),
            path,
            handles: 1,
        };
        self.spans().insert(id, data);
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let target = short_target(metadata.target()).unwrap_or_default();
        let mut spans = self.path_of(innermost());
        if !spans.is_empty() {
            spans.push_str(": ");
        }
        let (now, level) = (Timestamp::now(), metadata.level());
        let Fields { message, text } = fields;
        self.write(&format!(
            "{now:.6} {level:>5} {target}: {spans}{message}{text}"
        ));
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(at) = entered.iter().rposition(|id| *id == span.into_u64()) {
                entered.remove(at);
            }
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(span) = self.spans().get_mut(&id.into_u64()) {
            span.handles += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut spans = self.spans();
        let Some(span) = spans.get_mut(&id.into_u64()) else {
            return false;
        };
        span.handles -= 1;
        let is_closed = span.handles == 0;
        if is_closed {
            spans.remove(&id.into_u64());
        }
        is_closed
    }

    fn current_span(&self) -> Current {
        let spans = self.spans();
        let current = innermost().and_then(|id| Some((id, spans.get(&id)?.metadata)));
        match current {
            Some((id, metadata)) => Current::new(Id::from_u64(id), metadata),
            None => Current::none(),
        }
    }
}

/// The fields of an event or of a span, as text.
#[derive(Default)]
struct Fields {
    message: String,
    /// ` key=value` for each.
    text: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail; a value that cannot be shown is left out.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.text, " {name}={value:?}"),
        };
    }
}

/// The name of an enum's variant, to be logged without what is in it: prompts, notes and output
/// stand in events and inputs.
pub fn variant<T: Debug>(value: &T) -> impl Display + '_ {
    struct Variant<'a, T>(&'a T);
    impl<T: Debug> Display for Variant<'_, T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let mut name = FirstWord(String::new());
            // It ends with an error as soon as the name is over.
            let _ = write!(name, "{:?}", self.0);
            f.write_str(&name.0)
        }
    }
    Variant(value)
}

struct FirstWord(String);

impl Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c.is_alphanumeric() {
                true => self.0.push(c),
                false => return Err(fmt::Error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::{debug, info, info_span};

    #[derive(Debug)]
    #[expect(dead_code, reason = "only its name is shown")]
    enum Sample {
        Say { text: &'static str },
        Wait(u32),
        Hold,
    }

    fn logged(filter: &str, act: impl FnOnce()) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.log");
        let file = LogFile::default();
        file.place(&path);
        let subscriber = LineSubscriber::new(filter.parse().unwrap(), Output::File(file));
        tracing::subscriber::with_default(subscriber, act);
        std::fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn a_line_tells_time_level_place_spans_message_and_fields() {
        let text = logged("debug", || {
            let outer = info_span!("loop", id = "0192").entered();
            let run = info_span!("run", run = 7);
            info!(parent: None, "outside");
            run.in_scope(|| info!(code = 3, path = ?"a b", "agent ended"));
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    tracing::dispatcher::with_default(&dispatch, || {
                        run.in_scope(|| debug!("elsewhere"));
                        debug!("alone");
                    });
                });
            });
            drop(outer);
            debug!("over");
        });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        let rest = lines[1].split_once(' ').unwrap().1;
        assert_eq!(
            rest.trim_start(),
            "INFO store::debug_log::subscriber::tests: loop{id=0192}:run{run=7}: agent ended code=3 path=\"a b\""
        );
        assert!(lines[2].ends_with("loop{id=0192}:run{run=7}: elsewhere"));
        assert!(lines[3].ends_with("tests: alone"));
        assert!(lines[4].ends_with("tests: over"));
    }

    #[test]
    fn only_the_name_of_a_variant_is_shown() {
        let say = Sample::Say { text: "a note" };
        assert_eq!(variant(&say).to_string(), "Say");
        assert_eq!(variant(&Sample::Wait(3)).to_string(), "Wait");
        assert_eq!(variant(&Sample::Hold).to_string(), "Hold");
    }

    #[test]
    fn lines_are_cleaned_masked_and_cut() {
        let text = logged("info", || {
            let key = format!("sk-ant-api03-{}", "Ab3".repeat(20));
            info!(error = %format!("\x1b[31mbad\x1b[0m\nkey {key}"), "failed");
            info!("{}", "long ".repeat(5000));
            debug!("not asked for");
        });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].contains("error=bad key sk-ant-***"), "{text}");
        assert!(!text.contains("sk-ant-api03-Ab3Ab3"), "{text}");
        assert!(lines[1].len() <= LONGEST_LINE_BYTES + 3);
    }
}
