/**
 * The kinds of tests. The suffix of a file says its kind: `loop.test.ts` is quick, `crash.process.test.ts` is not.
 * `alone` runs one file at a time.
 */
export const kinds = [
  { name: 'quick', goal: 'units, contracts and properties, in the process of the test' },
  { name: 'slow', goal: 'the same, in files that take a second or more' },
  { name: 'process', goal: 'other processes: examples, the CLI, servers, clients, kills' },
  { name: 'store', goal: 'PostgreSQL and the engines of durable stores' },
  { name: 'browser', goal: 'pages in Chromium (CHROMIUM is its path)' },
  { name: 'measure', goal: 'growth, leaks and the bench, one file at a time', alone: true },
];

const core = 'packages/millrace/src';

/** The suites of core that run again with `--layer`: with a layer on every agent, nothing may change. */
const layered = {
  /** Passes everything on immediately. */
  pass: [
    `${core}/(agent|loop)\\.`,
    `${core}/call/(call-layers|interrupt|prepared|layer-faults|properties|sub-agent)\\.`,
    `${core}/(flow/demand|layers/output|memories/(history|suspend)|seams/(interceptor|layer|watch))\\.`,
    `${core}/layers/(added-tools|approval|select)\\.`,
    `${core}/(journal|layers/sessions|layers/traffic|phases|tools)/`,
    `${core}/operators/(parallel|race|route|sequential)\\.`,
  ],
  /** Passes everything on in a later task, so suites that look at one moment, such as a kill between two steps, are left out. */
  async: [
    `${core}/(agent|loop|call/properties|memories/(history|suspend)|seams/(interceptor|watch))\\.`,
    `${core}/journal/(attach[^/]*|calls|draining|fork-[^/]*)\\.`,
    `${core}/layers/(added-tools|approval|select)\\.`,
    `${core}/layers/sessions/(forked-session|hostile-states|in-process-sessions|keep-sessions|session-properties)\\.`,
    `${core}/phases/(corrections|phase-list|store-memory)\\.`,
    `${core}/(tools/|layers/traffic/(?!budget|cost|limit-calls))`,
  ],
};

export const layers = Object.keys(layered);

/** The patterns of test files that `MILLRACE_KIND` and `MILLRACE_LAYER` choose, for jest.config.ts. Without them, all. */
export function chosenFiles({ MILLRACE_KIND: kind, MILLRACE_LAYER: layer }) {
  if (layer !== undefined) return [`(${layered[layer].join('|')}).*test\\.ts$`];
  const others = kinds.map(({ name }) => name).filter((name) => name !== 'quick');
  if (kind === undefined) return ['\\.test\\.(ts|mjs)$'];
  if (kind !== 'quick') return [`\\.${kind}\\.test\\.(ts|mjs)$`];
  return [`(?<!\\.(${others.join('|')}))\\.test\\.(ts|mjs)$`];
}
