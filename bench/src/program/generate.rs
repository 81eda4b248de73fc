//! The C text of the measured program: families of functions with bodies of about the same
//! length, and phases that call them hot (one function again and again) or round robin.
use std::fmt::Write;

/// Functions of one body length. Names are `e5_0000` in the executable, `l5_0000` in the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// About this many instructions a body.
    pub body: u32,
    pub count: u32,
}

/// Where a family lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Executable,
    Library,
}

impl Place {
    pub fn letter(self) -> char {
        match self {
            Place::Executable => 'e',
            Place::Library => 'l',
        }
    }
}

/// What one program consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramPlan {
    /// Names the folder it is built in.
    pub name: &'static str,
    pub executable: Vec<Family>,
    pub library: Vec<Family>,
}

/// Phases without measured calls, per round.
pub const FLOORS: [&str; 4] = [
    "floor_empty_loop",
    "floor_two_rdtsc",
    "floor_inline_pair",
    "floor_100_adds",
];

/// Body lengths mixed as in the published comparison of empty probes: 1,000 functions.
const MIX: [Family; 4] = [
    Family {
        body: 5,
        count: 400,
    },
    Family {
        body: 20,
        count: 400,
    },
    Family {
        body: 100,
        count: 190,
    },
    Family {
        body: 1000,
        count: 10,
    },
];

impl ProgramPlan {
    /// Every body length, 1,000 functions each (50 of the longest: 1,000 of them measure the
    /// cache, not the probe), in the executable and in the library.
    pub fn full() -> ProgramPlan {
        let families = vec![
            Family {
                body: 5,
                count: 1000,
            },
            Family {
                body: 20,
                count: 1000,
            },
            Family {
                body: 100,
                count: 1000,
            },
            Family {
                body: 1000,
                count: 50,
            },
        ];
        ProgramPlan {
            name: "full",
            executable: families.clone(),
            library: families,
        }
    }

    /// The shortest bodies in the executable only: for peers that need their own build.
    pub fn short() -> ProgramPlan {
        ProgramPlan {
            name: "short",
            executable: vec![Family {
                body: 5,
                count: 1000,
            }],
            library: Vec::new(),
        }
    }

    /// How many functions, the call tree not counted.
    pub fn functions(&self) -> usize {
        let all = self.executable.iter().chain(&self.library);
        all.map(|family| family.count as usize).sum()
    }

    /// What selects all of them for `hopscope record -f`, the call tree included.
    pub fn patterns(&self) -> Vec<String> {
        let own = ["tree_??", "stage_??", "pipeline"];
        let mut patterns: Vec<String> = own
            .iter()
            .map(|name| format!("hopscope-bench-program!{name}"))
            .collect();
        for place in [Place::Executable, Place::Library] {
            patterns.extend(ProgramPlan::patterns_of(place, self.families(place)));
        }
        patterns
    }

    /// What selects `families` where they lie.
    pub fn patterns_of(place: Place, families: &[Family]) -> Vec<String> {
        let module = match place {
            Place::Executable => "hopscope-bench-program",
            Place::Library => "libhopscope-bench.so",
        };
        families
            .iter()
            .map(|family| format!("{module}!{}{}_*", place.letter(), family.body))
            .collect()
    }

    pub fn families(&self, place: Place) -> &[Family] {
        match place {
            Place::Executable => &self.executable,
            Place::Library => &self.library,
        }
    }
}

pub(crate) fn name(place: Place, body: u32, n: u32) -> String {
    format!("{}{body}_{n:04}", place.letter())
}

/// One function. Three accumulators, so that long bodies are neither one dependency chain nor
/// something the compiler can fold.
fn function(out: &mut String, place: Place, body: u32, n: u32) {
    let (name, k, s) = (name(place, body, n), 1 + n * 7 % 120, 3 + n % 29);
    let _ = write!(out, "long {name}(long x)\n{{\n");
    if body < 20 {
        let _ = writeln!(out, "    x = x * 3 + {k};\n    return x ^ x >> {s};\n}}");
        return;
    }
    let _ = writeln!(out, "    long a = x, b = x + {k}, c = x ^ {k};");
    let steps = (body - 8) / 5;
    for step in 0..steps {
        let (k, s) = (1 + (n + step * 11) % 120, 3 + (n + step * 5) % 29);
        let _ = writeln!(out, "    a = a * 5 + {k}; b ^= b >> {s}; c += a;");
    }
    let _ = writeln!(out, "    return a ^ b ^ c;\n}}");
}

/// The source file of one family.
pub(crate) fn family(place: Place, family: Family) -> String {
    let mut out = String::new();
    for n in 0..family.count {
        function(&mut out, place, family.body, n);
    }
    out
}

/// A complete binary tree of calls, five levels: 31 calls a round. Interprocedural optimisation
/// is off between the nodes, or they would become one function.
pub(crate) fn tree() -> String {
    let mut out = String::new();
    for n in (0..31).rev() {
        let _ = write!(
            out,
            "__attribute__((noipa)) long tree_{n:02}(long x)\n{{\n    x = x * 3 + {};\n",
            n + 1
        );
        for child in [2 * n + 1, 2 * n + 2] {
            if child < 31 {
                let _ = writeln!(out, "    x ^= tree_{child:02}(x);");
            }
        }
        out.push_str("    return x ^ x >> 7;\n}\n");
    }
    out
}

/// Stages of a packet pipeline: a function that calls ten others right behind each other, eleven calls a round.
pub(crate) fn pipeline() -> String {
    let mut out = String::new();
    for n in 0..STAGES {
        let _ = write!(
            out,
            "__attribute__((noipa)) long stage_{n:02}(long x)\n{{\n    return (x ^ {}) * {};\n}}\n",
            n + 3,
            2 * n + 3
        );
    }
    out.push_str("__attribute__((noipa)) long pipeline(long x)\n{\n");
    for n in 0..STAGES {
        let _ = writeln!(out, "    x = stage_{n:02}(x);");
    }
    out.push_str("    return x + 1;\n}\n");
    out
}

const STAGES: u32 = 10;

fn declare(out: &mut String, place: Place, family: Family) {
    for n in 0..family.count {
        let _ = writeln!(out, "long {}(long);", name(place, family.body, n));
    }
}

/// `functions` called in turn, each with the result of the one before.
fn round(out: &mut String, phase: &str, functions: impl Iterator<Item = String>) {
    let _ = writeln!(
        out,
        "static long {phase}(long x, long n)\n{{\n    while (n--) {{"
    );
    for function in functions {
        let _ = writeln!(out, "        x = {function}(x);");
    }
    out.push_str("    }\n    return x;\n}\n");
}

fn members(place: Place, family: Family) -> impl Iterator<Item = String> {
    (0..family.count).map(move |n| name(place, family.body, n))
}

/// The file with the phases and their table.
pub(crate) fn phases(plan: &ProgramPlan) -> String {
    let mut out = String::from("#include \"harness.h\"\n");
    let mut table: Vec<(String, u32)> = Vec::new();
    for place in [Place::Executable, Place::Library] {
        let families = plan.families(place);
        for family in families {
            let (l, body) = (place.letter(), family.body);
            declare(&mut out, place, *family);
            let first = name(place, body, 0);
            let _ = writeln!(
                out,
                "static long hot_{l}{body}(long x, long n)\n{{\n    while (n--)\n        x = {first}(x);\n    return x;\n}}\n\
                 static long indep_{l}{body}(long x, long n)\n{{\n    while (n--)\n        x ^= {first}(n);\n    return x;\n}}"
            );
            table.push((format!("hot_{l}{body}"), 1));
            table.push((format!("indep_{l}{body}"), 1));
            let phase = format!("rr_{l}{body}");
            round(&mut out, &phase, members(place, *family));
            table.push((phase, family.count));
        }
        if MIX.iter().all(|m| {
            families
                .iter()
                .any(|f| f.body == m.body && f.count >= m.count)
        }) {
            let phase = format!("rr_{}mix", place.letter());
            round(
                &mut out,
                &phase,
                MIX.into_iter().flat_map(|m| members(place, m)),
            );
            table.push((phase, MIX.iter().map(|m| m.count).sum()));
        }
    }
    out.push_str("long tree_00(long);\n");
    round(&mut out, "tree_e", std::iter::once("tree_00".to_string()));
    table.push(("tree_e".into(), 31));
    out.push_str("long pipeline(long);\n");
    round(&mut out, "pipe_e", std::iter::once("pipeline".to_string()));
    table.push(("pipe_e".into(), STAGES + 1));
    for floor in FLOORS {
        let _ = writeln!(out, "phase_function {floor};");
        table.push((floor.into(), 0));
    }
    let smallest = plan.executable.first().map_or(5, |f| f.body);
    let _ = writeln!(
        out,
        "long round_for_threads(long x)\n{{\n    return rr_e{smallest}(x, 1);\n}}"
    );
    out.push_str("const struct phase phases[] = {\n");
    for (phase, calls) in table {
        let _ = writeln!(out, "    {{\"{phase}\", {phase}, {calls}}},");
    }
    out.push_str("    {0, 0, 0},\n};\n");
    out
}

/// Wrappers for `ld --wrap`: enter hook, the real function, leave hook.
pub(crate) fn wrappers(plan: &ProgramPlan) -> String {
    let mut out = String::from("void hook_enter(unsigned);\nvoid hook_leave(unsigned);\n");
    let all = plan
        .executable
        .iter()
        .flat_map(|f| members(Place::Executable, *f));
    for (id, name) in all.enumerate() {
        let _ = writeln!(
            out,
            "long __real_{name}(long);\nlong __wrap_{name}(long x)\n{{\n    hook_enter({id});\n    x = __real_{name}(x);\n    hook_leave({id});\n    return x;\n}}"
        );
    }
    out
}

/// The linker's options that put [`wrappers`] in effect.
pub(crate) fn wrap_options(plan: &ProgramPlan) -> String {
    plan.executable
        .iter()
        .flat_map(|f| members(Place::Executable, *f))
        .fold(String::new(), |all, name| all + "--wrap=" + &name + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_phase_with_its_calls() {
        let text = phases(&ProgramPlan::full());
        for row in [
            "{\"hot_e5\", hot_e5, 1}",
            "{\"rr_e5\", rr_e5, 1000}",
            "{\"rr_emix\", rr_emix, 1000}",
            "{\"rr_l1000\", rr_l1000, 50}",
            "{\"tree_e\", tree_e, 31}",
            "{\"pipe_e\", pipe_e, 11}",
            "{\"floor_two_rdtsc\", floor_two_rdtsc, 0}",
        ] {
            assert!(text.contains(row), "{row}");
        }
        assert!(!phases(&ProgramPlan::short()).contains("mix"));
    }

    #[test]
    fn the_tree_has_31_nodes_and_30_calls() {
        let text = tree();
        assert_eq!(text.matches("noipa").count(), 31);
        assert_eq!(text.matches("x ^= tree_").count(), 30);
    }

    #[test]
    fn long_bodies_have_about_the_stated_number_of_steps() {
        let mut text = String::new();
        function(&mut text, Place::Executable, 100, 3);
        // three statements of five instructions a step
        assert_eq!(text.matches("c += a").count(), 18);
    }
}
