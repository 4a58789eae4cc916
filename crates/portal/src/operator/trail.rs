//! The audit trail, the newest lines first, with a search.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};

use crate::values::Values;
use crate::{Answer, Frame, render_page};
use api::Api;
use service::TrailLineView;

/// Lines on a page.
const LINES: usize = 50;
/// Lines that are read at a time, and how often at most for a page: a search goes on on the next one.
const READ: (u32, usize) = (200, 20);

#[derive(Template)]
#[template(path = "portal/operator/trail.html")]
struct Trail {
    frame: Frame,
    /// The words that are looked for.
    text: String,
    lines: Vec<TrailLineView>,
    /// The address of the first page of the search.
    newest: String,
    /// The address of the next page; none where nothing is older.
    older: Option<String>,
    /// Whether the page does not begin with the newest.
    is_older: bool,
}

/// GET /portal/operator/trail: `text` is looked for, and the lines are those before the one with the number `before`.
pub(super) async fn show_trail_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    let query = Values::read(uri.query().unwrap_or_default().as_bytes());
    let text = query.trimmed("text").to_owned();
    let wanted = text.to_lowercase();
    let mut before: Option<i64> = query.get("before").parse().ok();
    let is_older = before.is_some();
    let mut lines = Vec::new();
    for _ in 0..READ.1 {
        let read = service::list_trail_before(&api.service, before, READ.0).await?;
        before = read.last().map(|line| line.number);
        for line in read {
            if lines.len() == LINES {
                break;
            }
            before = Some(line.number);
            if trail_line_has_words(&line, &wanted) {
                lines.push(line);
            }
        }
        if lines.len() == LINES || before.is_none_or(|number| number <= 1) {
            break;
        }
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    let newest = format!(
        "/portal/operator/trail?{}",
        query.append_pair("text", &text).finish()
    );
    let older = before.filter(|number| *number > 1);
    let older = older.map(|number| format!("{newest}&before={number}"));
    let shown = Trail {
        frame: visitor.frame("Trail"),
        text,
        lines,
        newest,
        older,
        is_older,
    };
    render_page(StatusCode::OK, &shown)
}

/// Whether a line has all the words of a search somewhere, in small letters.
fn trail_line_has_words(line: &TrailLineView, wanted: &str) -> bool {
    let party = line.party.as_deref().unwrap_or_default();
    let all = format!("{} {} {party} {}", line.kind, line.detail, line.subject).to_lowercase();
    wanted.split_whitespace().all(|word| all.contains(word))
}
