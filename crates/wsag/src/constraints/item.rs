//! One item: a Location and the constraint on the nodes that it selects.

use crate::constraints::location;
use crate::constraints::particles::Particle;
use crate::constraints::selected_node::SelectedNode;
use crate::constraints::steps::StepPaths;
use crate::constraints::types::{Type, is_annotation};
use crate::constraints::view::View;
use crate::xml::ns::{WSAG, XS};
use crate::xml::{DocumentCheck, Node, ViolationKind, shorten_text_in_violation};

/// Most items and constraints of one template or offer; each costs every offer an evaluation.
pub(crate) const ITEMS_MAX: usize = 100;

/// An item, compiled.
pub(super) struct Item {
    pub(super) name: String,
    /// As it was written, for messages.
    text: String,
    location: StepPaths,
    rule: ItemRule,
}

enum ItemRule {
    Nothing,
    Value(Type),
    Content(Particle),
}

impl ItemRule {
    fn read(constraint: Node<'_>) -> Result<ItemRule, String> {
        let mut children = constraint.children().filter(|child| !is_annotation(*child));
        let Some(first) = children.next() else {
            return Ok(ItemRule::Nothing);
        };
        if Particle::is_particle(first) {
            return match children.next() {
                None => Ok(ItemRule::Content(Particle::read(first, 0)?)),
                Some(_) => Err("an ItemConstraint may have one particle only".to_owned()),
            };
        }
        let restricted = if first.is(XS, "simpleType") {
            Type::restricted(Type::read(first)?, children)
        } else {
            Type::restricted(Type::Untyped, std::iter::once(first).chain(children))
        };
        restricted.map(ItemRule::Value)
    }
}

impl Item {
    /// Compiles an item.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub(super) fn read(node: Node<'_>) -> Result<Item, String> {
        let child = |name| node.child(WSAG, name);
        let (location, constraint) = child("Location")
            .zip(child("ItemConstraint"))
            .ok_or("it is incomplete")?;
        if let Some(foreign) = node.children().nth(2) {
            return Err(format!("{} is not known in an item", foreign.name()));
        }
        let text = location.text().trim().to_owned();
        Ok(Item {
            name: node.attribute(WSAG, "Name").unwrap_or_default().to_owned(),
            location: location::compile_location(&text, location)?,
            rule: ItemRule::read(constraint)?,
            text,
        })
    }

    /// Why no node that the item selects can meet it.
    pub(super) fn contradiction(&self) -> Option<String> {
        match &self.rule {
            ItemRule::Value(wanted) => wanted.contradiction(),
            ItemRule::Nothing | ItemRule::Content(_) => None,
        }
    }

    /// Checks the nodes that the item selects. An evaluation that takes too long is a violation like another.
    pub(super) fn check(&self, view: &View<'_>, check: &mut DocumentCheck) {
        if let Err(message) = self.check_selected(view, check) {
            let message = format!("item {:?}: {message}", shorten_text_in_violation(&self.name));
            check.add(ViolationKind::NotEvaluable, view.offer(), message);
        }
    }

    fn check_selected(&self, view: &View<'_>, check: &mut DocumentCheck) -> Result<(), String> {
        let said = |message: &str| format!("{message} (item {:?})", shorten_text_in_violation(&self.name));
        let selected = self.location.select(view)?;
        if let ItemRule::Content(particle) = &self.rule
            && selected.is_empty()
            && !particle.is_emptiable()
        {
            let message = format!("at least one {} is expected", self.text);
            check.add(ViolationKind::Constraint, view.offer(), said(&message));
        }
        for selected in selected {
            if check.is_full() {
                break;
            }
            let checked = match (&self.rule, &selected) {
                (ItemRule::Nothing, _) => Ok(()),
                (ItemRule::Value(wanted), _) => wanted.check_charged(&selected.value(), view)?,
                (ItemRule::Content(particle), SelectedNode::Element(node)) => {
                    let mut report = |node: Node<'_>, message: String| {
                        check.add(ViolationKind::Constraint, node, said(&message));
                    };
                    particle.check(*node, view, &mut report)?;
                    Ok(())
                }
                (ItemRule::Content(_), _) => {
                    Err("an element is expected, because the template demands children".to_owned())
                }
            };
            if let Err(message) = checked {
                let (node, below) = selected.place();
                check.add_below(node, &below, ViolationKind::Constraint, said(&message));
            }
        }
        Ok(())
    }
}
