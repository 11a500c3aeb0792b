import { root } from '../workspaces.mjs';

const plain = [
  {
    name: 'quick',
    goal: 'units, contracts and properties',
    minutes: 3,
    // Every test that is in no other tier.
    paths: [],
  },
  {
    name: 'processes',
    goal: 'docs, examples, the CLI, faults of providers, flow over HTTP',
    minutes: 1,
    paths: [
      'examples/',
      'packages/cli/src/(main|run-devtools|run-mcp|run-serve|vendors)\\.test',
      'packages/a2a/src/server/kill\\.test',
      'packages/cli/src/runs/',
      'packages/mcp/',
      'packages/restate/',
      'packages/server/src/node/',
      'scripts/start\\.test',
      'conformance/fault-suite/',
      'conformance/flow-suite/',
      'conformance/mcp-suite/',
    ],
  },
  {
    name: 'stores',
    goal: 'databases, and processes that are killed in the middle of calls',
    minutes: 1,
    paths: [
      'packages/dbos/',
      'packages/store/',
      'packages/tools/src/sql/',
      'conformance/crash-suite/',
    ],
  },
  {
    name: 'long',
    goal: 'what takes long or tests the tests: growth of logs, signals, kills of an embedded database, real clients and frameworks, the bench, a new project',
    minutes: 4,
    paths: [
      'bench/',
      'conformance/client-suite/',
      'conformance/crash-suite/src/fleet/fleet\\.test',
      'conformance/fault-server/',
      'conformance/flow-suite/src/slow/',
      'packages/a2a/src/(a2a-tool|server/kill)\\.test',
      'packages/cli/src/(run-devtools|run-mcp|run-serve|runs/fork-run|runs/runs)\\.test',
      'conformance/crash-suite/src/fleet/position\\.test',
      'packages/core/src/journal/cuts/(teams-in-turn|thinking)\\.test',
      'packages/dbos/src/(calls|store|workers)\\.test',
      'examples/without-code-generation\\.test',
      'packages/mcp/src/hostile\\.test',
      'packages/demo-model/src/properties\\.test',
      'packages/restate/src/',
      'packages/wire/src/dispatcher\\.test',
      'packages/chat-page/src/page/conversation\\.test',
      'packages/server/src/(clients|scenarios)\\.test',
      'packages/mcp/src/published\\.test',
      'packages/retrieval/src/(documents/documents-in|embed/offline-embedder)\\.test',
      'packages/server/src/node/kill\\.test',
      'packages/store/src/documents/(document-faults|document-index|server)\\.test',
      'packages/store/src/(files/fencing|postgres/open-postgres)\\.test',
      'packages/tools/src/(code-acting|javascript)/',
      'packages/tools/src/(files/file-tools|sql/sql-tools|web/fetch-page)\\.test',
      'packages/store/src/embedded/open-embedded\\.test',
      'packages/store/src/files/list-calls\\.test',
      'packages/cli/src/runs/signals\\.test',
      'packages/core/src/journal/(compact-log|conversation-log|corpus)\\.test',
      'packages/store/src/embedded/(crash|full-disk)\\.test',
      'scripts/init\\.test',
      'scripts/platforms/',
    ],
  },
  {
    name: 'browser',
    goal: 'the chat page, the devtools and the documentation in Chromium (CHROMIUM is its path)',
    minutes: 4,
    paths: [
      'packages/chat-page/src/browser/',
      'packages/devtools/src/browser/',
      'scripts/docs/site\\.test',
    ],
  },
  {
    name: 'measures',
    goal: 'growth, leaks and the bench, one after the other',
    minutes: 1,
    paths: ['/([^/]+-)?(growth|leaks|bench|import-time)\\.test'],
    inBand: true,
  },
];
/** Core suites that run again with a layer on every agent: nothing may change. Those that look at a moment, such as a kill between two steps, run with one that passes on only. */
const core = 'packages/core/src';
const layered = [
  {
    name: 'passing',
    goal: 'the core of core with a layer that passes everything on',
    minutes: 1,
    paths: [`${core}/(agent|loop)\\.test`, `${core}/call/(call-layers|interrupt)\\.test`],
    layer: 'pass',
  },
  {
    name: 'cuts',
    goal: 'the same for more suites, and for calls that are cut anywhere',
    minutes: 1,
    paths: [
      `${core}/(call/prepared|flow/demand|layers/output|memories/(history|suspend)|seams/watch)\\.test`,
      `${core}/call/(layer-faults|properties|sub-agent)\\.test`,
      `${core}/seams/(interceptor|layer)\\.test`,
      `${core}/layers/(added-tools|approval|select)\\.test`,
      `${core}/(layers/sessions|layers/traffic|phases|tools)/`,
      `${core}/operators/(parallel|race|route|sequential)\\.test`,
      `${core}/journal/`,
    ],
    layer: 'pass',
  },
  {
    name: 'later',
    goal: 'core suites with a layer that passes everything on later',
    minutes: 1,
    paths: [
      `${core}/(agent|call/properties|loop|memories/(history|suspend)|seams/(interceptor|watch))\\.test`,
      `${core}/journal/(attach[^/]*|calls|draining|fork-[^/]*)\\.test`,
      `${core}/layers/(added-tools|approval|select)\\.test`,
      `${core}/layers/sessions/(forked-session|hostile-states|in-process-sessions|keep-sessions)\\.test`,
      `${core}/layers/sessions/session-properties\\.test`,
      `${core}/phases/(corrections|phase-list|store-memory)\\.test`,
      `${core}/tools/`,
      `${core}/layers/traffic/(?!budget|limit-calls)`,
    ],
    layer: 'async',
  },
];

export const tiers = [...plain, ...layered];

/** The tiers that `MILLRACE_TIERS` names, for jest.config.ts. Without it, one with every test. */
export function chosenTiers() {
  const names = process.env.MILLRACE_TIERS?.split(',');
  if (names === undefined) {
    return [{ layer: process.env.MILLRACE_LAYER, accepts: [matching([])] }];
  }
  return tiers.filter(({ name }) => names.includes(name)).map(selected);
}

/** A test is in the last tier that has a pattern for it. */
function selected(tier) {
  const later = plain.includes(tier)
    ? plain.slice(plain.indexOf(tier) + 1).flatMap(({ paths }) => paths)
    : [];
  const { name, layer, paths } = tier;
  return { name, layer, accepts: [matching(paths)], skips: later };
}

const rootPattern = root.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');

const matching = (paths) =>
  `^${rootPattern}${paths.length > 0 ? `(?=.*(?:${paths.join('|')}))` : ''}.*\\.test\\.(ts|mjs)$`;
