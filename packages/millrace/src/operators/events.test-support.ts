import fc from 'fast-check';
import type { AgentEvent, ChunkOf, EventOf } from '../events.js';
import type { Row } from './diagrams.test-support.js';
import type { Citation } from '../values/message.js';
import { noUsage, type Usage } from '../values/usage.js';

/** Where an event of a test comes from: a root call named `c`, unless it says otherwise. */
export interface Place {
  readonly call?: string;
  readonly root?: string;
  readonly seq?: number;
}

const envelope = ({ call = 'c', root = call, seq = 0 }: Place) => ({
  rootId: root,
  callId: call,
  ...(root === call ? {} : { parentId: root }),
  agent: root === call ? [root] : [root, call],
  iteration: 1,
  seq,
  at: seq,
});

/** A delta of a message. */
export const delta = (
  text: string,
  {
    message = 'm',
    kind = 'text',
    type = 'reasoningChunk',
    toolCall,
    citation,
    ...place
  }: Place & {
    readonly message?: string;
    readonly kind?: ChunkOf['kind'];
    readonly citation?: Citation;
    readonly type?: 'reasoningChunk' | 'summaryChunk';
    readonly toolCall?: { readonly index: number; readonly id: string; readonly name: string };
  } = {},
): EventOf<'reasoningChunk' | 'summaryChunk'> => ({
  type,
  messageId: message,
  kind,
  delta: text,
  ...(toolCall === undefined ? {} : { toolCall }),
  ...(citation === undefined ? {} : { citation }),
  ...envelope(place),
});

/** A structural event, told from others by its message. */
export const structural = (message: string, place: Place = {}): EventOf<'warning'> => ({
  type: 'warning',
  message,
  ...envelope(place),
});

/** The last event of a call, with a reply of this text. */
export const postCall = (
  text: string,
  { usage = noUsage, ...place }: Place & { readonly usage?: Usage } = {},
): EventOf<'postCall'> => ({
  type: 'postCall',
  reply: {
    id: 'r',
    role: 'assistant',
    content: [{ type: 'text', text }],
    text,
    reason: 'answer',
    finish: 'stop',
    iterations: 1,
    toolCalls: [],
    usage,
    usageByPhase: {},
    createdAt: 0,
    elapsedMs: 0,
  },
  ...envelope(place),
});

/** What a diagram shows of an event: the text of a delta, the message of another. */
export const shown = (event: AgentEvent): string =>
  'delta' in event ? event.delta : event.type === 'warning' ? event.message : event.type;

/** The event that a diagram shows so: capitals are structural. */
export const event = (label: string): AgentEvent =>
  /^[A-Z]/.test(label) ? structural(label) : delta(label);

/** The marbles of a row, by letter. */
export const lettersOf = ({ marbles, values = {} }: Row): Readonly<Record<string, string>> =>
  Object.fromEntries((marbles.match(/[a-z]/gi) ?? []).map((it) => [it, values[it] ?? it]));

/** The events that a row stands for, by letter. */
export const eventsOf = (row: Row): Readonly<Record<string, AgentEvent>> =>
  Object.fromEntries(Object.entries(lettersOf(row)).map(([it, label]) => [it, event(label)]));

/** Events of several calls at once, sub-agents among them, numbered as a call numbers them. */
export const script: fc.Arbitrary<readonly AgentEvent[]> = fc
  .array(
    fc.record({
      call: fc.constantFrom('a', 'b', 'a/1', 'a/2'),
      isStructural: fc.boolean(),
      message: fc.constantFrom('m', 'n'),
      kind: fc.constantFrom('text', 'thinking', 'toolInput', 'citation'),
      type: fc.constantFrom('reasoningChunk', 'summaryChunk'),
      tool: fc.nat(1),
      text: fc.string({ maxLength: 3 }),
    }),
    { maxLength: 60 },
  )
  .map((events) =>
    events.map(({ call, isStructural, tool, text, ...chunk }, index) => {
      const place = { call, root: call.charAt(0), seq: index + 1 };
      if (isStructural) return structural(`${index}`, place);
      const toolCall = { index: tool, id: `t${tool}`, name: 'tool' };
      const isWhole = chunk.kind === 'citation';
      return delta(isWhole ? '' : text, {
        ...place,
        ...chunk,
        ...(isWhole ? { citation: { title: `${index}` } } : {}),
        ...(chunk.kind === 'toolInput' ? { toolCall } : {}),
      });
    }),
  );

const textOf = (it: AgentEvent): string => ('delta' in it ? it.delta : '');

const keyOf = (it: AgentEvent): string =>
  'delta' in it
    ? JSON.stringify([it.messageId, it.type, it.kind, it.toolCall, it.citation])
    : `${it.seq}`;

/** What a call has said, in its order: what continues one another is one. */
const said = (events: readonly AgentEvent[]): readonly string[] => {
  const runs: { readonly key: string; readonly texts: string[] }[] = [];
  for (const it of events) {
    const run = runs.at(-1);
    if (run?.key === keyOf(it)) run.texts.push(textOf(it));
    else runs.push({ key: keyOf(it), texts: [textOf(it)] });
  }
  return runs.map(({ key, texts }) => `${key} ${texts.join('')}`);
};

const byCall = (events: readonly AgentEvent[]): Readonly<Record<string, readonly string[]>> => {
  const ids = [...new Set(events.map(({ callId }) => callId))].sort();
  return Object.fromEntries(
    ids.map((id) => [id, said(events.filter(({ callId }) => callId === id))]),
  );
};

/**
 * What merging must leave as it is: what each call says, in its order; all structural events, in theirs; and what
 * had been said in the root call before each of them.
 */
export const essence = (events: readonly AgentEvent[]) => ({
  byCall: byCall(events),
  structural: events.flatMap((it, index) =>
    'delta' in it
      ? []
      : [
          {
            event: it,
            before: byCall(events.slice(0, index).filter(({ rootId }) => rootId === it.rootId)),
          },
        ],
  ),
});

/** Tells whether the events of each root call are numbered upwards. */
export const isNumberedUpwards = (events: readonly AgentEvent[]): boolean => {
  const latest = new Map<string, number>();
  return events.every(({ rootId, seq }) => {
    const before = latest.get(rootId) ?? 0;
    latest.set(rootId, seq);
    return seq > before;
  });
};
