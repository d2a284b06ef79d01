-- Times are UTC strings such as 2026-01-02T03:04:05.123Z: SQLite's date functions read them.
-- Whatever an agent did not report is null, never 0.

create table loops (            -- one row per loop
  loop_id        text primary key,
  name           text,
  parent         text,          -- the task loop that it belongs to; null for independent loops
  task           text,          -- the task that it works on
  tag            text,          -- the SCUD tag or the roadmap's name, of a task loop
  directory      text,          -- where it works
  state_file     text,
  command        text,
  backend        text,
  model          text,
  prompt         text,
  promise        text,
  max_iterations integer,       -- null: unlimited
  started_at     text,
  ended_at       text,          -- null: running or interrupted
  exit_reason    text,          -- completion_promise_detected, gates_passed, stalled, ...
  exit_code      integer,
  message        text,          -- the reason in a sentence
  iterations     integer not null default 0,
  seconds        real not null default 0, -- agents and gates; waiting is not counted
  tokens         integer,
  cost_usd       real           -- of a task loop: including its children's
);

create table iterations (       -- one row per iteration that counted
  loop_id        text not null,
  iteration      integer not null, -- from 1
  task           text,
  run            integer,       -- its last run
  started_at     text,
  ended_at       text,
  seconds        real,          -- agent and gates
  exit_code      integer,       -- of the agent; 128 + n for signal n
  ended_by       text,          -- exit, timeout, idle, promise, ...
  promise        text,          -- the claim as it was printed
  near_misses    integer,       -- tags of a promise that did not count
  near_miss      text,          -- the line of the last one
  verdict        text,          -- promise, gates, success, refused, blocked, failed, worked, ...
  reason         text,          -- why it failed or is blocked
  progress       text,          -- moved, none, unknown
  gates_green    integer not null default 0,
  gates_red      integer not null default 0,
  files          integer,       -- changed files
  commit_hash    text,
  tokens         integer,
  cost_usd       real,
  output         text,          -- the beginning of what the agent said
  output_tail    text,          -- the end of what it printed
  primary key (loop_id, iteration)
);

create table runs (             -- one row per start of an agent, including those that hit a limit
  loop_id        text not null,
  run            integer not null,
  iteration      integer not null,
  agent          integer not null, -- 0: --command; from 1: the fallbacks
  started_at     text,
  ended_at       text,
  seconds        real,
  exit_code      integer,
  ended_by       text,
  counted        integer not null default 1, -- 0: hit a provider limit, not an iteration
  limit_words    text,
  retry_at       text,
  promise        text,
  near_misses    integer,
  near_miss      text,
  error          text,
  prompt_bytes   integer,
  stdout_bytes   integer,
  stderr_bytes   integer,
  tokens_in      integer,
  tokens_out     integer,
  tokens_cached  integer,
  tokens         integer,
  cost_usd       real,
  cost_estimated integer,       -- 1: from a price table
  output         text,
  primary key (loop_id, run)
);

create table gates (            -- one row per gate that ran
  loop_id        text not null,
  iteration      integer not null,
  gate           integer not null, -- from 1
  command        text,
  outcome        text,          -- green, red, timeout, cancelled
  exit_code      integer,
  seconds        real,
  ended_at       text,
  tail           text           -- the end of its output
);

create table tasks (            -- one row per task of a task loop
  loop_id        text not null,
  task           text not null,
  title          text,
  wave           integer,
  complexity     integer,
  status         text not null default 'pending',
  attempts       integer not null default 0,
  started_at     text,
  ended_at       text,
  task_loop      text,          -- the loop of its attempts: join iterations on it
  reason         text,          -- why it is blocked
  seconds        real not null default 0,
  tokens         integer,
  cost_usd       real,
  primary key (loop_id, task)
);

create table attempts (         -- one row per attempt at a task
  loop_id        text not null,
  task           text not null,
  attempt        integer not null,
  slot           integer,
  started_at     text,
  ended_at       text,
  outcome        text,          -- green, red, failed, blocked_by_agent, limited, ...
  evidence       text
);

create table waves (            -- one row per completed wave
  loop_id        text not null,
  wave           integer not null,
  ended_at       text,
  commit_hash    text
);

create table waits (            -- one row per wait
  loop_id        text not null,
  started_at     text,
  until          text,
  ended_at       text,
  why            text,          -- limit, failures
  words          text,
  ended_by       text           -- elapsed, retry, stop
);

create table commands (         -- one row per command given by a person
  loop_id        text not null,
  id             integer not null,
  command        text,          -- say, set, pause, cancel, ...
  accepted_at    text,
  effective_at   text,
  data           text           -- JSON
);

create table events (           -- every line of every journal
  loop_id        text not null,
  seq            integer not null,
  at             text not null,
  kind           text not null,
  data           text,          -- JSON: json_extract(data, '$.iteration')
  primary key (loop_id, seq)
) without rowid;
