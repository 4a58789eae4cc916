//! What a job on this machine sees besides its own files.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Paths that one application may show to its jobs: each is a mount, made at the start of every job.
const VISIBLE_MAX: usize = 64;

/// Folders that every job has of its own, so that nothing of this machine can be seen there.
pub(super) const OWN: [&str; 2] = ["/proc", "/work"];

/// The value of `visible`, in messages.
pub(super) const EXPECTED_PATHS: &str =
    "at most 64 absolute paths without `..`, none of them the root, /dev, /tmp, or below /proc or /work";

/// What jobs of an application that is not trusted see besides their own files and the system's programs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Isolation {
    /// Files and folders of this machine that they may read, by their absolute paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visible: Vec<PathBuf>,
    /// Whether they have the network of this machine; without it they have a loopback interface of their own.
    #[serde(default)]
    pub network: bool,
}

impl Isolation {
    /// The key with a wrong value, if there is one.
    pub(super) fn wrong_key(&self) -> Option<&'static str> {
        let is_right = |path: &PathBuf| {
            let is_plain = |each| matches!(each, Component::RootDir | Component::Normal(_));
            path.is_absolute()
                && path.components().count() > 1
                && path.components().all(is_plain)
                && !["/dev", "/tmp"].iter().any(|own| path == Path::new(own))
                && !OWN.iter().any(|own| path.starts_with(own))
        };
        let are_right = self.visible.len() <= VISIBLE_MAX && self.visible.iter().all(is_right);
        (!are_right).then_some("visible")
    }
}
