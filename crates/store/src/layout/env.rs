//! What the environment says about places: values in, so that nothing else has to ask.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The places that the environment names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvPaths {
    /// `DESCARTES_STATE_DIR`.
    pub state_dir: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub xdg_state_home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub xdg_config_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `TMPDIR`, else `/tmp`.
    pub temp_dir: PathBuf,
    /// Every variable that begins with `DESCARTES_`.
    pub settings: BTreeMap<String, String>,
}

impl EnvPaths {
    /// Asks the environment of this process: the only function of this crate that does.
    pub fn from_process() -> Self {
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let settings = std::env::vars_os().filter_map(text);
        Self {
            settings: settings
                .filter(|(name, _)| name.starts_with("DESCARTES_"))
                .collect(),
            ..Self::from_lookup(|name| std::env::var_os(name))
        }
    }

    /// Asks `lookup`. Empty values count as not set, as everywhere in the XDG world.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name| {
            lookup(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        Self {
            state_dir: path("DESCARTES_STATE_DIR"),
            xdg_state_home: path("XDG_STATE_HOME"),
            xdg_runtime_dir: path("XDG_RUNTIME_DIR"),
            xdg_config_home: path("XDG_CONFIG_HOME"),
            home: path("HOME"),
            temp_dir: path("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp")),
            settings: BTreeMap::new(),
        }
    }

    /// The user's config file: `$XDG_CONFIG_HOME/descartes/config.toml`, else under `~/.config`.
    pub fn user_config(&self) -> Option<PathBuf> {
        let xdg = self
            .xdg_config_home
            .clone()
            .filter(|path| path.is_absolute());
        let folder = xdg.or_else(|| Some(self.home.as_ref()?.join(".config")))?;
        Some(folder.join("descartes/config.toml"))
    }
}
