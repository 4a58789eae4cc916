//! The origin of an offer that was composed from values: the places where its faults are reported.

use std::borrow::Cow;

/// The places of the values of an offer in the input of its maker, in the input's own form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePlaces {
    root: String,
    /// None where the maker has sent a document.
    members: Option<Vec<Member>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    element: Cow<'static, str>,
    /// From 0 among siblings of the element's name; none for any.
    position: Option<usize>,
    place: String,
}

impl ValuePlaces {
    /// In a document, in which the offer is the element at this path.
    pub fn document(root: impl Into<String>) -> ValuePlaces {
        ValuePlaces {
            root: root.into(),
            members: None,
        }
    }

    /// In another form: the whole has this place, and so has each part that no member gives.
    pub fn form(root: impl Into<String>) -> ValuePlaces {
        ValuePlaces {
            root: root.into(),
            members: Some(Vec::new()),
        }
    }

    /// Notes the place of a member that is said by the elements of this name, such as `jsdl:Application`, with all below them;
    /// where there is a position, by one of them.
    pub fn put(
        &mut self,
        element: impl Into<Cow<'static, str>>,
        position: Option<usize>,
        place: impl Into<String>,
    ) {
        self.members.get_or_insert_default().push(Member {
            element: element.into(),
            position,
            place: place.into(),
        });
    }

    /// The place of the whole.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The place of the part at a path below the offer in a document, such as `/wsag:Context`. In another form, the place of the
    /// member that gives it.
    pub fn below(&self, path: &str) -> String {
        if self.is_document() {
            return format!("{}{path}", self.root);
        }
        let element = path.rsplit(['/', '@']).next().unwrap_or_default();
        self.of(element, || 0).unwrap_or(&self.root).to_owned()
    }

    /// Whether the maker has sent a document.
    pub fn is_document(&self) -> bool {
        self.members.is_none()
    }

    /// The place of an element and nothing around it, where a member is said by it.
    pub(crate) fn of(&self, element: &str, position: impl Fn() -> usize) -> Option<&str> {
        let mut members = self.members.iter().flatten();
        let says = |member: &&Member| {
            member.element == element && member.position.is_none_or(|wanted| wanted == position())
        };
        members.find(says).map(|member| member.place.as_str())
    }
}
