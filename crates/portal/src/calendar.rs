//! The calendar: when nodes are free and what they cost, and what of the rest is the visitor's own. Each free time fills in the form.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use jiff::ToSpan;
use jiff::civil::Date;

use super::chart::band::Band;
use super::chart::slots::ListedSlot;
use super::chart::{Link, Paging};
use super::period::{Period, PeriodExtent, PeriodRow};
use super::request::field_names;
use super::request::filled_form::{
    filled_with_deadline, filled_with_start, form_address, form_filled_with_duration, form_filled_with_nodes,
};
use super::request::form_reader::{self};
use super::session::{self, Visitor};
use super::values::Values;
use super::{Answer, Frame, render_page, text, zone};
use access::Role;
use api::Api;
use service::{CalendarCellView, CalendarQuery, CalendarResourceView, CalendarView};

/// Days before today beyond which nothing is looked for.
const DAYS_BACK: i64 = 366;
/// The last day of the calendar, in days from today.
const DAYS_AHEAD: i64 = 3_660;
/// The duration that a time fills in where the template proposes none.
const HOUR: i64 = 3_600;
/// A time that has begun is asked for from now on, and with as many seconds more as a person may take for it.
const TIME_TO_ASK: i64 = 600;
/// A free time is asked for up to a day from its start.
const DAY: i64 = 86_400;

#[derive(Template)]
#[template(path = "portal/calendar.html")]
struct Calendar {
    frame: Frame,
    /// The address of this page.
    here: String,
    paging: Paging,
    extent: &'static str,
    from: String,
    nodes: u32,
    /// The name that is asked for; empty for all.
    resource: String,
    is_published: bool,
    is_everybodys: bool,
    is_priced: bool,
    names: Vec<String>,
    columns: Vec<String>,
    /// The days below the picture of a period in which the columns of the table are no days of it; none for a day.
    days: Vec<String>,
    resources: Vec<Resource>,
    more: Option<String>,
    /// When the plan was looked at, as a dateTime.
    taken: String,
}

struct Resource {
    is: CalendarResourceView,
    band: Option<Band>,
    rows: Vec<PeriodRow<Cell>>,
    /// The slots of the visitor's, or of anybody for an operator.
    own: Vec<ListedSlot>,
    next_free: Vec<FreeTime>,
}

/// A cell of the table.
struct Cell {
    class: &'static str,
    /// The fewest free nodes.
    shown: String,
    price: Option<String>,
    words: String,
    /// The form filled in; none where nothing can be had.
    address: Option<String>,
    /// From when on it is asked for, and its end, in seconds since the epoch: how long a range of cells is.
    from: i64,
    until: i64,
}

/// A time in which the wanted nodes are free.
struct FreeTime {
    start: String,
    end: String,
    address: Option<String>,
}

/// What a visitor asks for.
struct CalendarSelection {
    period: Period,
    extent: PeriodExtent,
    nodes: u32,
    resource: String,
    skip: usize,
    today: Date,
}

/// GET /portal/calendar.
pub(super) async fn show_calendar_page(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Answer {
    let visitor = session::visitor_of_session(&api, &headers, None).await?;
    let values = Values::read(uri.query().unwrap_or_default().as_bytes());
    let (nodes, duration) = service::size_proposed_by_templates(&api.service);
    let asked = read_calendar_query(&values, api.service.clock().now().seconds(), nodes);
    let duration = duration.map_or(HOUR, i64::from);
    let view = service::show_calendar(
        &api.service,
        CalendarQuery {
            party: visitor.caller.party.clone(),
            sees_all: visitor.caller.role == Role::Operator,
            wanted: (asked.nodes, duration),
            resource: Some(asked.resource.clone()).filter(|name| !name.is_empty()),
            skip: asked.skip,
            cells: asked.period.cells(),
            parts: asked.period.parts_of_cell(),
        },
    )
    .await?;
    let catalogue = api.service.catalogue();
    let application = catalogue.applications().first();
    let filling = CalendarForm {
        application: application.map_or_else(String::new, form_reader::form_value_of_application),
        nodes: asked.nodes,
        duration,
        taken: view.taken,
        may_act: visitor.frame("").may_act,
    };
    render_page(StatusCode::OK, &view_calendar(&visitor, &asked, view, &filling))
}

/// Reads the query of the page; values without sense count as left out.
fn read_calendar_query(values: &Values, now: i64, proposed: Option<u32>) -> CalendarSelection {
    let zone = zone::present_rules();
    let today = zone::day_in_zone(now, &zone);
    let day = Date::strptime("%Y-%m-%d", values.trimmed("from")).unwrap_or(today);
    let earliest = today.saturating_sub(DAYS_BACK.days());
    let latest = today.saturating_add(DAYS_AHEAD.days());
    let extent = PeriodExtent::from_word(values.trimmed("view")).unwrap_or(PeriodExtent::Week);
    let nodes = values
        .trimmed(field_names::NODES)
        .parse()
        .ok()
        .filter(|nodes| *nodes > 0);
    CalendarSelection {
        period: Period::around(extent, day.clamp(earliest, latest), zone),
        extent,
        nodes: nodes.or(proposed).unwrap_or(1),
        resource: values.trimmed(field_names::RESOURCE).to_owned(),
        skip: values.trimmed("skip").parse().unwrap_or(0),
        today,
    }
}

impl CalendarSelection {
    /// The address of the calendar for another extent and another day.
    fn address(&self, extent: PeriodExtent, day: Date, skip: usize) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("view", extent.word())
            .append_pair("from", &day.to_string())
            .append_pair(field_names::NODES, &self.nodes.to_string());
        if !self.resource.is_empty() {
            query.append_pair(field_names::RESOURCE, &self.resource);
        }
        if skip > 0 {
            query.append_pair("skip", &skip.to_string());
        }
        format!("/portal/calendar?{}", query.finish())
    }

    fn link(&self, extent: PeriodExtent) -> Link {
        Link {
            word: text::capitalised(extent.word()),
            address: self.address(extent, self.day_in_sight(), 0),
            is_here: extent == self.extent,
        }
    }

    /// The day that another extent shows: today where it is shown, or else the first one.
    fn day_in_sight(&self) -> Date {
        let (first, next) = (self.period.first, self.period.next());
        if (first..next).contains(&self.today) {
            self.today
        } else {
            first
        }
    }

    fn days_of_scale(&self) -> Vec<String> {
        let form = match self.extent {
            PeriodExtent::Day => return Vec::new(),
            PeriodExtent::Week => "%a %-d",
            PeriodExtent::Month => "%-d",
        };
        let days = self.period.first.series(1.day());
        days.take_while(|day| *day < self.period.next())
            .map(|day| day.strftime(form).to_string())
            .collect()
    }
}

fn view_calendar(
    visitor: &Visitor,
    asked: &CalendarSelection,
    view: CalendarView,
    filling: &CalendarForm,
) -> Calendar {
    let first = asked.period.first;
    let at = |day: Date| asked.address(asked.extent, day, 0);
    let is_last = asked
        .period
        .cells()
        .last()
        .is_none_or(|(_, end)| *end >= view.horizon);
    let is_priced = {
        let mut cells = view.resources.iter().flat_map(|resource| &resource.cells);
        cells.any(|cell| cell.node_hour.is_some())
    };
    let resources = view.resources.into_iter();
    Calendar {
        frame: visitor.frame("Calendar"),
        here: asked.address(asked.extent, first, asked.skip),
        paging: Paging {
            title: asked.period.title(),
            previous: at(asked.period.previous()),
            present: ("Today", at(asked.today)),
            next: (!is_last).then(|| at(asked.period.next())),
            lengths: PeriodExtent::ALL.map(|extent| asked.link(extent)).into(),
        },
        extent: asked.extent.word(),
        from: first.to_string(),
        nodes: asked.nodes,
        resource: asked.resource.clone(),
        is_published: view.is_published,
        is_everybodys: visitor.caller.role == Role::Operator,
        is_priced,
        names: view.names,
        columns: asked.period.columns(),
        days: asked.days_of_scale(),
        resources: resources
            .map(|resource| view_calendar_resource(resource, asked, filling))
            .collect(),
        more: view.next.map(|skip| asked.address(asked.extent, first, skip)),
        taken: text::date_time(view.taken),
    }
}

fn view_calendar_resource(
    is: CalendarResourceView,
    asked: &CalendarSelection,
    filling: &CalendarForm,
) -> Resource {
    let cells = is
        .cells
        .iter()
        .map(|cell| view_calendar_cell(cell, &is, asked, filling));
    let next_free = is.next_free.iter().map(|(start, end)| FreeTime {
        start: text::date_time(*start),
        end: text::date_time(*end),
        address: filling.address(&is.name, *start, (*end).min(*start + DAY.max(filling.duration))),
    });
    Resource {
        rows: asked.period.rows(cells.collect()),
        own: is.slots.iter().map(ListedSlot::of).collect(),
        next_free: next_free.collect(),
        band: Band::of(&is, asked.nodes),
        is,
    }
}

fn view_calendar_cell(
    cell: &CalendarCellView,
    one_resource: &CalendarResourceView,
    asked: &CalendarSelection,
    filling: &CalendarForm,
) -> Cell {
    let mut words = asked.period.cell_name(cell.start);
    let is_over = cell.end <= filling.taken;
    let all = text::nodes(one_resource.nodes);
    match cell.free {
        None if is_over => words += ", over",
        None => {}
        Some((least, most)) if least == most => words += &format!(", {least} of {all} free"),
        Some((least, most)) => words += &format!(", {least} to {most} of {all} free"),
    }
    if let Some(price) = &cell.node_hour {
        words += &format!(", {price} per node-hour");
    }
    let class = match cell.free {
        None if is_over => "over",
        None => "untold",
        Some((_, most)) if most < asked.nodes => "none",
        Some((least, _)) if least < asked.nodes => "some",
        // The share of free nodes in thirds.
        Some((least, _)) => match u64::from(least) * 3 / u64::from(one_resource.nodes.max(1)) {
            0 => "third",
            1 => "half",
            _ => "most",
        },
    };
    Cell {
        class,
        shown: cell
            .free
            .map_or_else(|| "–".to_owned(), |(least, _)| least.to_string()),
        price: cell.node_hour.as_ref().map(|price| price.amount.clone()),
        words,
        address: Some(())
            .filter(|()| cell.is_open)
            .and_then(|()| filling.address(&one_resource.name, cell.start, cell.end)),
        from: filling.earliest(cell.start),
        until: cell.end,
    }
}

/// What a time fills in, beside itself.
struct CalendarForm {
    application: String,
    nodes: u32,
    duration: i64,
    taken: i64,
    may_act: bool,
}

impl CalendarForm {
    /// From when on a time is asked for that starts then.
    fn earliest(&self, start: i64) -> i64 {
        if start > self.taken {
            start
        } else {
            self.taken + TIME_TO_ASK
        }
    }

    /// The form filled in for a time on a resource; none for a visitor that may not reserve.
    fn address(&self, resource: &str, start: i64, end: i64) -> Option<String> {
        // A time that has begun is asked for without an earliest start.
        let from = Some(start).filter(|start| *start > self.taken);
        let least = self.earliest(start) + self.duration;
        let values = Values::default()
            .with(field_names::APPLICATION, self.application.clone())
            .with(field_names::RESOURCE, resource);
        let values = form_filled_with_duration(
            form_filled_with_nodes(values, self.nodes, self.nodes),
            self.duration,
        );
        let values = filled_with_deadline(filled_with_start(values, from), Some(end.max(least)));
        self.may_act.then(|| form_address(&values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filling() -> CalendarForm {
        CalendarForm {
            application: "sleep\t".to_owned(),
            nodes: 2,
            duration: 5_400,
            taken: 1_000,
            may_act: true,
        }
    }

    #[test]
    fn a_time_fills_in_the_form_with_a_window_that_has_room() {
        let address = filling().address("a&b", 7_200, 10_800).unwrap();
        let values = Values::read(address.strip_prefix("/portal?").unwrap().as_bytes());
        for (name, value) in [
            ("application", "sleep\t"),
            ("nodes", "2"),
            ("hours", "1"),
            ("minutes", "30"),
            ("resource", "a&b"),
            ("start-date", "1970-01-01"),
            ("start-time", "02:00:00"),
            ("deadline-time", "03:30:00"),
        ] {
            assert_eq!(values.get(name), value, "{name}");
        }
        assert!(!values.has("seconds"));
        let begun = filling().address("r", 0, 3_600).unwrap();
        assert!(
            !begun.contains("start-date") && begun.contains("deadline-time=01%3A56%3A40"),
            "{begun}"
        );
        let reader = CalendarForm {
            may_act: false,
            ..filling()
        };
        assert_eq!(reader.address("r", 7_200, 10_800), None);
    }

    #[test]
    fn a_query_that_makes_no_sense_is_the_present_week() {
        let now = 1_796_300_000;
        let read = |query: &str| read_calendar_query(&Values::read(query.as_bytes()), now, Some(2));
        let usual = read("");
        for query in [
            "view=year&from=tomorrow&nodes=-1&skip=x",
            "nodes=0",
            "nodes=99999999999",
            "from=2026-13-01",
        ] {
            let asked = read(query);
            assert_eq!(
                (asked.extent, asked.period.first),
                (PeriodExtent::Week, usual.period.first),
                "{query}"
            );
            assert_eq!((asked.nodes, asked.skip), (2, 0), "{query}");
        }
        assert_eq!(usual.day_in_sight(), usual.today);
        assert_eq!(read("from=2026-01-07").day_in_sight().to_string(), "2026-01-05");
        assert_eq!(read("from=2026-02-07&view=month").days_of_scale().len(), 28);
        assert!(read("from=9999-12-31&view=month").period.cells().len() >= 28);
        assert!(read("from=-9999-01-01&view=day").period.cells().len() == 24);
    }
}
