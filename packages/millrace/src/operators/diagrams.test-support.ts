/** One line of a diagram. */
export interface Row {
  readonly label: string;
  /** In RxJS's notation, or that of its subscriptions; a frame is a millisecond. */
  readonly marbles: string;
  /** What a marble stands for, where it is not its own letter. */
  readonly values?: Readonly<Record<string, string>>;
}

/** A picture of what an operator does: small letters are deltas, capitals structural events. The tests run its very marbles. */
export interface Diagram {
  /** The name of its file. */
  readonly name: string;
  readonly title: string;
  readonly explanation: string;
  readonly rows: Readonly<Record<string, Row>>;
}

export const coalesceMapDiagram = {
  name: 'coalesce-map',
  title: 'coalesceMap(project)',
  explanation:
    'What waits behind the work that runs becomes one event, as far as no structural event stands between.',
  rows: {
    source: { label: 'events', marbles: 'abc-Sde--|' },
    inner: { label: 'project(x)', marbles: '---(x|)' },
    output: { label: 'out', marbles: '---a--y--S--(z|)', values: { y: 'bc', z: 'de' } },
  },
} as const satisfies Diagram;

export const sampleDeltasDiagram = {
  name: 'sample-deltas',
  title: 'sampleDeltas(5)',
  explanation:
    'The first delta passes at once, then what has come in each 5 ms. A structural event does not wait: what waits goes before it.',
  rows: {
    source: { label: 'events', marbles: 'abcd---efS----g--h|' },
    output: {
      label: 'out',
      marbles: 'a----y---(zS)-g---(h|)',
      values: { y: 'bcd', z: 'ef' },
    },
  },
} as const satisfies Diagram;

export const boundedPauseDiagram = {
  name: 'bounded-pause',
  title: "bounded(project, { overflow: 'pause', demand: createDemand(4) })",
  explanation:
    'The gate closes when four events wait, and opens when no more than two do. While it is closed, the source reads nothing.',
  rows: {
    source: { label: 'events', marbles: 'abcdefgh--ij--k(l|)' },
    demand: {
      label: 'demand',
      marbles: 'o------x--ox--ox--o',
      values: { o: 'open', x: 'closed' },
    },
    inner: { label: 'project(x)', marbles: '--(x|)' },
    output: { label: 'out', marbles: '--a-b-c-d-e-f-g-h-i-j-k-(l|)' },
  },
} as const satisfies Diagram;

export const boundedCoalesceDiagram = {
  name: 'bounded-coalesce',
  title: "bounded(project, { overflow: 'coalesce', max: 2 })",
  explanation:
    'Two events wait as they are; while they do, a further delta goes into the one that it continues. Behind a structural event there is none: it waits beside them.',
  rows: {
    source: { label: 'events', marbles: 'abcdef-Sg|' },
    inner: { label: 'project(x)', marbles: '---(x|)' },
    output: { label: 'out', marbles: '---a--b--y--z--S--(g|)', values: { y: 'cd', z: 'ef' } },
  },
} as const satisfies Diagram;

export const boundedErrorDiagram = {
  name: 'bounded-error',
  title: "bounded(project, { overflow: 'error', max: 2 })",
  explanation: 'The third event that would have to wait is an error, and the source is left.',
  rows: {
    source: { label: 'events', marbles: 'a----bcde---|' },
    inner: { label: 'project(x)', marbles: '----(x|)' },
    output: { label: 'out', marbles: '----a---#' },
  },
} as const satisfies Diagram;

/** All of them: each is a picture of the documentation. */
export const diagrams: readonly Diagram[] = [
  coalesceMapDiagram,
  sampleDeltasDiagram,
  boundedPauseDiagram,
  boundedCoalesceDiagram,
  boundedErrorDiagram,
];
