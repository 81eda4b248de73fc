//! A look of the ticker.
use crate::kernel;
use crate::sleeper::{span_until, watch};
use crate::state::State;
use crate::ticker::{Next, will_park};
use nix::libc;

/// Looks at a leader that sleeps until the ticker is parked.
const CALM_LOOKS: u32 = 10;

impl State {
    pub fn tick(&mut self) -> Next {
        if self.ticker_leads {
            self.ticker_leads = false;
            self.leader = None;
            if let Some(bell) = self.ticker.bell {
                let _ = kernel::read(bell, &mut [0; 8]);
            }
        } else if self.turns != self.ticker.seen {
            self.ticker.seen = self.turns;
            self.ticker.calm = 0;
            return Next::Rest;
        }
        if self.leader.is_some() {
            self.ticker.calm += 1;
            return self.rest_or_park();
        }
        self.turn();
        self.flush();
        self.ticker.seen = self.turns;
        if std::mem::replace(&mut self.ticker.calls_seen, self.calls) != self.calls {
            // The program is amid what it was told of before, and asks again soon.
            return Next::Rest;
        }
        let bell = match self.ticker.bell {
            Some(bell) => bell,
            None => match kernel::eventfd().and_then(|fd| self.internal(fd)) {
                Ok(bell) => *self.ticker.bell.insert(bell),
                Err(_) => return Next::Rest,
            },
        };
        let Some(stack) = self.owned_stack() else {
            self.ticker.calm = CALM_LOOKS + 1;
            return self.rest_or_park();
        };
        let mut fds = vec![watch(bell, libc::POLLIN)];
        if let Some(port) = stack.wait_fd() {
            let room = if stack.is_full { libc::POLLOUT } else { 0 };
            fds.push(watch(port, libc::POLLIN | room));
        }
        let until = stack.due();
        self.leader = Some(u32::MAX);
        self.ticker_leads = true;
        self.leader_until = until;
        Next::Watch(fds, until.map(span_until))
    }

    fn rest_or_park(&mut self) -> Next {
        if self.ticker.calm <= CALM_LOOKS {
            return Next::Rest;
        }
        self.ticker.calm = 0;
        will_park();
        Next::Park
    }
}
