//! The `descartes` binary, run as people run it: in a world of its own, with an agent that
//! does what its script says.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod asks_permission;
mod bad_input;
mod changes_told;
mod common;
mod dead_hosts;
mod debug_log;
mod detach;
mod docs_commands;
mod flags_agent;
mod flags_done;
mod flags_git;
mod flags_limits;
mod flags_other;
mod flags_place;
mod flags_table;
mod flags_tasks;
mod forged_files;
mod free_text;
mod gate_files;
mod git_calls;
mod git_snapshots;
mod gui;
mod help;
mod install;
mod install_mcp;
mod landing;
mod landing_proof;
mod landing_stashes;
mod landing_statuses;
mod landing_yours;
mod lost_directory;
mod mcp;
mod mcp_client;
mod merge_trains;
mod moved_projects;
mod near_miss;
mod no_inotify;
mod notes_kept;
mod notify;
mod old_loops;
mod planted_files;
mod query;
mod report;
mod resume;
mod roadmap_habits;
mod roadmap_keys;
mod sandbox;
mod sandbox_escapes;
mod scud_habits;
mod settings;
mod setup;
mod shown;
mod signals;
mod slots_safe;
mod start_over;
mod state_by_hand;
mod steer_crowd;
mod steer_within;
mod task_common;
mod task_lists;
mod tasks;
mod tasks_agents;
mod tasks_blocked;
mod tasks_budget;
mod tasks_file_away;
mod tasks_input;
mod tasks_locks;
mod tasks_marked;
mod tasks_seen;
mod terminal;
mod trackers;
mod trust;
mod verb_snapshots;
mod verbs_look;
mod verbs_steer;
mod verbs_work;
mod watch;
mod watch_common;
mod watch_hard;
mod webhooks_https;
