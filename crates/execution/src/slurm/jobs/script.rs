//! The script that every job of a cluster begins with, and its words about the end.

use domain::clock::{MICROS_PER_SECOND, Micros};

/// How long a job may run on past its slot's end before it is cancelled: its script stops it by itself.
pub(crate) const OVERTIME: Micros = 10 * MICROS_PER_SECOND;

/// The script that every job begins with. Its arguments: the folder of its records, the slot's end in seconds, the signal
/// that tells the program to save its work (`-` for none) and how many milliseconds before that end it gets it, the program
/// and its arguments. The claim comes before anything else, so that a second submission of the same job does nothing, even
/// if Slurm does not remember the first.
pub(crate) const SCRIPT: &str = r#"#!/bin/sh
# Runs a job of Bespeak at most once, and not beyond the end of its slot. Has it save its work before that, where it is to.
# The service may change both in `until` and `save`.
records=$1 end=$2 signal=$3 grace=$4
shift 4
exec 3>&2 2>/dev/null
look() {
  [ -r "$records/until" ] && read -r end <"$records/until"
  [ -r "$records/save" ] && read -r signal grace <"$records/save"
  left=$((end * 1000 - $(date +%s%3N)))
}
tell() {
  read -r group <"$records/.group" && kill -s "$1" -- "-$group"
}
stop() {
  until [ -s "$records/.group" ]; do sleep 0.1; done
  tell TERM
  tries=0
  while [ "$tries" -lt 20 ] && tell 0; do
    sleep 0.1
    tries=$((tries + 1))
  done
  tell KILL
}
look
# What would hardly do more than save its work is not begun: it might be told so before it listens.
[ "$signal" = - ] || left=$((left - 1000))
[ "$left" -gt "$grace" ] || exit 118
mkdir "$records/claim" || exit 117
date +%s%6N >"$records/.started" && mv "$records/.started" "$records/started"
(
  told=
  trap 'stop; exit' TERM
  while look; [ "$left" -gt 0 ]; do
    pause=$left
    if [ -z "$told" ] && [ "$signal" != - ]; then
      pause=$((left - grace))
      if [ "$pause" -le 0 ]; then
        # Written down first: a program that ends well after this may have saved unfinished work.
        true >"$records/.told" && tell "$signal" && told=1
        pause=100
      fi
    fi
    [ "$pause" -lt 2000 ] || pause=2000
    sleep "$((pause / 1000)).$(printf %03d "$((pause % 1000))")"
  done
  true >"$records/.over"
  # A program that was told to save its work has had its time.
  if [ -e "$records/.told" ]; then tell KILL; else stop; fi
) 3>&- &
watch=$!
# Slurm ends a job by ending all of it at once, and this has to see the program's end.
trap 'cancelled=1' TERM
# A group of its own is told and stopped as a whole. It is not in the background, where some signals are ignored.
# One whose group is not known could not be stopped.
setsid sh -c 'echo $$ >"$0" && exec "$@"' "$records/.group" "$@" </dev/null 2>&3 3>&-
status=$?
[ -s "$records/.group" ] || exit 118
kill -s KILL "$watch"
# Slurm knows how that ended.
[ -z "$cancelled" ] || exit 143
told=
[ -e "$records/.told" ] && told=told
[ -e "$records/.over" ] && status=124
echo "$status $(date +%s%6N) $told" >"$records/.ended" && mv "$records/.ended" "$records/ended"
exit "$status"
"#;

/// The script's exit status where another job has the claim, and where its slot is over.
pub(super) const TURNED_AWAY: [i32; 2] = [117, 118];
/// The script's exit status where it had to stop the program, and the one of a program that was killed otherwise.
pub(super) const STOPPED: [i32; 2] = [124, 137];

/// The exit status of a program that Slurm ends with its job.
pub(super) const TERMINATED: i32 = 143;
