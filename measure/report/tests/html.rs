//! The page of a small recording whose names are hostile: what a browser would parse of it.
mod sample;

use hopscope_analyze::{Batch, Calls, Group, Index, Match, NoMatch, Packet, Packets};
use hopscope_event::{Stamp, StreamEntry, StreamIx, Tsc};
use hopscope_report::{Budget, Detail, Overview, Page, Streams, Windows, write_html};
use sample::Sample;

const HOSTILE: &str =
    "</script><script>alert(1)</script><!--\" onload='x' \u{2028}\u{202e}&\u{fffd}";

fn page(sample: &Sample, streams: &[StreamEntry], stamps: &[Stamp]) -> String {
    let mut packets = Packets::new(StreamIx(0));
    stamps.iter().for_each(|s| packets.add(s));
    let packets = [packets];
    let mut recording = sample.recording();
    if !streams.is_empty() {
        recording.streams = Streams {
            entries: streams,
            packets: &packets,
        };
    }
    let (functions, modules) = (
        sample.analyzed(Group::Function),
        sample.analyzed(Group::Module),
    );
    let mut overview = Overview::new(sample.meta.start.tsc);
    let mut detail = Detail::new(Windows::whole(Budget::WHOLE));
    let mut calls = Calls::new(Index::new(&sample.functions, &sample.threads));
    for (thread, first_index, lost, records) in &sample.batches {
        let batch = Batch {
            thread: *thread,
            first_index: *first_index,
            lost: *lost,
            torn: 0,
            records,
            taken: &[],
            early: false,
        };
        calls.feed(&batch, &mut |call| {
            overview.call(&call);
            detail.call(&call);
        });
    }
    for stamp in stamps {
        overview.packet(StreamIx(0), stamp);
        detail.packet(&Packet {
            stream: StreamIx(0),
            stamp: *stamp,
            run: None,
            matched: Match::None(NoMatch::NoRunMeanwhile),
        });
    }
    let mut page = Page {
        file: HOSTILE,
        recording: &recording,
        functions: &functions,
        modules: &modules,
        overview: &overview,
        detail: &mut detail,
        root: None,
        late: None,
        kernel: None,
        notes: &[HOSTILE.to_owned()],
        focus: None,
    };
    let mut out = Vec::new();
    write_html(&mut out, &mut page).expect("to memory");
    String::from_utf8(out).expect("a page is UTF-8")
}

fn hostile() -> (Sample, Vec<StreamEntry>, Vec<Stamp>) {
    let mut sample = Sample::new();
    sample
        .functions
        .iter_mut()
        .for_each(|f| f.name = HOSTILE.into());
    sample
        .functions
        .iter_mut()
        .for_each(|f| f.file = Some(HOSTILE.into()));
    sample
        .modules
        .iter_mut()
        .for_each(|m| m.path = HOSTILE.into());
    sample
        .threads
        .iter_mut()
        .for_each(|t| t.comm = HOSTILE.into());
    sample
        .processes
        .iter_mut()
        .for_each(|p| p.command_line = vec![HOSTILE.into()]);
    for refusal in &mut sample.refusals {
        (refusal.name, refusal.reason) = (HOSTILE.into(), HOSTILE.into());
    }
    let meta = &mut sample.meta;
    for text in [
        &mut meta.hopscope_version,
        &mut meta.host,
        &mut meta.kernel,
        &mut meta.cpu,
    ] {
        *text = HOSTILE.into();
    }
    meta.command_line = vec![HOSTILE.into()];
    if let Some(summary) = &mut sample.summary {
        summary.notes = vec![HOSTILE.into()];
        summary.ended_because = HOSTILE.into();
    }
    sample.damage = Some(HOSTILE.into());
    let stream = StreamEntry {
        ix: StreamIx(0),
        sender: HOSTILE.into(),
        receiver: HOSTILE.into(),
        traffic: HOSTILE.into(),
    };
    let start = sample.meta.start.tsc;
    let stamp = |seq: u64| Stamp {
        seq,
        intended: start + seq * 1_000,
        sent: start + seq * 1_000 + 5,
        received: (seq != 3).then_some(Tsc(start.0 + seq * 1_000 + 700)),
        ..Stamp::default()
    };
    (sample, vec![stream], (0..10).map(stamp).collect())
}

/// Every name of the recording is text: no element, attribute or script begins or ends in one.
#[test]
fn hostile_names_stay_text() {
    let (sample, streams, stamps) = hostile();
    let page = page(&sample, &streams, &stamps);
    assert_eq!(
        page.matches("<script").count(),
        2,
        "the data and the page's own script"
    );
    assert_eq!(page.matches("</script").count(), 2);
    let (markup, data) = page
        .split_once("<script type=application/json id=data>")
        .expect("the data come after the markup");
    for part in ["alert(1)</", "<!--", "onload='", "\u{2028}", "\u{202e}"] {
        assert!(!markup.contains(part), "{part:?} reached the page");
    }
    let data = data.split('<').next().unwrap_or_default();
    let parsed: serde_json::Value = serde_json::from_str(data).expect("the data are JSON");
    let name = parsed["functions"][0]["name"].as_str().unwrap_or_default();
    assert!(
        name.starts_with("</script><script>alert(1)</script><!--\" onload='x'"),
        "{name}"
    );
    // Not by leaving them out: they are there, as text.
    assert!(
        page.matches("&lt;/script&gt;&lt;script&gt;alert(1)")
            .count()
            > 15
    );
    assert!(page.contains("\\u003c/script>"));
}

/// One file that asks for nothing from elsewhere, and says so to the browser.
#[test]
fn a_page_is_complete_in_itself() {
    let (sample, streams, stamps) = hostile();
    let page = page(&sample, &streams, &stamps);
    let policy = page
        .split_once("Content-Security-Policy content=\"")
        .map(|p| p.1);
    let policy = policy.and_then(|p| p.split('"').next()).unwrap_or_default();
    let digest = |d: &str| d.starts_with("'sha256-") && d.ends_with('\'');
    for rule in policy.split("; ") {
        let (what, from) = rule
            .split_once(' ')
            .expect("a rule names what and from where");
        assert!(
            from == "'none'" || (what.ends_with("-src") && digest(from)),
            "{rule}"
        );
    }
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    for outside in [" src=", " href=", "@import", "url(", " style="] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// Names of counters are text, too.
#[test]
fn counters_have_columns() {
    let mut sample = Sample::counted();
    sample.counters[2].name = HOSTILE.into();
    let page = page(&sample, &[], &[]);
    for part in [
        "<th class=n>instructions<th class=n>cycles<th class=n>&lt;/script&gt;",
        "<td class=n>3,090 ~<td class=n>2,190 ~<td class=n>0.0 ~<td class=n>1.41",
        "EMULATED",
        "3 lost the processor",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let (markup, _) = page.split_once("<script").expect("it has a script");
    assert!(!markup.contains("alert(1)</"));
}

/// Of packets only, or of nothing: no process was measured.
fn empty() -> Sample {
    let mut sample = Sample::new();
    sample.processes.clear();
    sample.threads.clear();
    sample.functions.clear();
    sample.batches.clear();
    sample
}

#[test]
fn calls_only_packets_only_and_nothing_at_all() {
    let (_, streams, stamps) = hostile();
    let calls = page(&Sample::new(), &[], &[]);
    assert!(calls.contains("id=timeline") && !calls.contains("id=packets"));
    assert!(calls.contains("<b>7</b> records lost, torn or missing"));
    let packets = page(&empty(), &streams, &stamps);
    assert!(packets.contains("id=packets") && packets.contains("<b>1</b> packets lost"));
    let nothing = page(&empty(), &[], &[]);
    assert!(nothing.contains("No call and no packet is recorded."));
}
