//! Places whose calls cannot be told apart for sure.
use super::Doubt;
use super::flow::Body;
use super::places::{Place, has};

impl Body<'_> {
    pub(super) fn doubt(&self, places: &[Place], n: usize) -> Doubt {
        let place = &places[n];
        let on_the_way = self.on_the_way(place);
        let is_common = |at: usize| {
            let of_same = |from: &usize| {
                places.iter().any(|other| {
                    other.function == place.function
                        && other.level == place.level
                        && has(&other.runs, *from)
                })
            };
            !on_the_way.contains(&at) && self.ways.into[at].iter().all(of_same)
        };
        let ways_in = self.ways_in(&place.runs);
        let is_begin = |at: &usize| place.begins.contains(at) || is_common(*at);
        let within = |at: &usize| {
            let mut from = self.ways.into[*at].iter();
            from.any(|from| has(&place.runs, *from))
        };
        let loops = |at: &usize| within(at) && self.comes_back(place, *at);
        Doubt {
            splits: place.hidden || !ways_in.iter().all(is_begin),
            joins: place.hidden || place.begins.iter().any(loops),
        }
    }
}
