import { MillraceError } from '../values/errors.js';
import { type AgentEvent, type EventOf, isGrowing } from '../events.js';
import { isRecord } from '../values/json.js';
import type { NewRecord, StoredRecord } from './call-store-driver.js';
import { canBeWritten, parsedText, withValue } from './record-json.js';

/*
 * A log holds each message of a conversation a few times, however many requests repeat it. The messages of a request, and the
 * history of a call, are recorded as `{ of, parts }`: `of` is the position of an earlier record, and a part is a message, or
 * `[from, count]` of the messages there. `options` may be a position, too. Deltas that come at short intervals share a record:
 * its `delta` is a list of `[delta, seq, at]`, both counted from those of the record. Readers see neither.
 */

interface MessageList {
  readonly position: number;
  readonly messages: readonly unknown[];
  readonly options: unknown;
}

export type Fields = Readonly<Record<string, unknown>>;

type RecordPlace = Pick<StoredRecord, 'kind' | 'name' | 'position'>;

/** The state of a log while it is read or written from its start: the content that later records may refer to. */
export interface KnownLog {
  readonly position: number;
  readonly lists: ReadonlyMap<string, MessageList>;
  /** Replaces content of earlier records in a new record by references. */
  readonly compact: (place: RecordPlace, value: Fields) => Fields;
  /** Replaces references in the next record by their content. */
  readonly whole: (record: StoredRecord) => StoredRecord;
}

/** Creates the state of a log that has been read up to here. Default: empty. */
export const createKnownLog = (
  from: Pick<KnownLog, 'position' | 'lists'> = { position: 0, lists: new Map() },
): KnownLog => {
  const lists = new Map(from.lists);
  let { position } = from;
  const keep = (keys: readonly string[], list: MessageList): void =>
    keys.forEach((key) => lists.set(key, list));
  const forget = ({ callId, rootId }: Fields): void => {
    if (callId === rootId) lists.clear();
    for (const key of lists.keys()) if (key.endsWith(` ${String(callId)}`)) lists.delete(key);
  };
  const resolved = (record: StoredRecord, field: string): StoredRecord => {
    const value = fieldsOf(record);
    if (value === undefined) return record;
    const { [field]: list, options } = value;
    const wanted = [isRecord(list) ? list['of'] : undefined, options].filter(isPosition);
    const keys = keysOf(record, value);
    const refers = wanted.length > 0;
    const base = keys.map((key) => lists.get(key)).find((it) => it?.position === wanted[0]);
    const messages = isList(list) ? list : messagesOf(list, base?.messages ?? []);
    if (messages === undefined && !refers) return record;
    const isBroken = (refers && base === undefined) || new Set(wanted).size > 1;
    if (isBroken || messages === undefined) return broken(record);
    const own = isPosition(options) ? base?.options : options;
    keep(keys, { position: record.position, messages, options: own });
    const whole = { ...value, [field]: messages, ...(options !== undefined && { options: own }) };
    return withValue(refers ? lazily(record, whole) : record, whole);
  };
  return {
    lists,
    get position() {
      return position;
    },
    compact: (place, value) => {
      if (isEndOfCall(place)) forget(value);
      const field = listField(place);
      const messages = field === undefined ? undefined : value[field];
      // A list among messages would read as a reference.
      if (field === undefined || !isList(messages) || messages.some(isList)) return value;
      const keys = keysOf(place, value);
      const [base] = keys.flatMap((key) => lists.get(key) ?? []);
      const parts = base === undefined ? messages : partsOf(messages, base.messages);
      // Parts that JSON drops cannot be referred to.
      if (!canBeWritten(parts)) return value;
      const { options } = value;
      keep(keys, { position: place.position, messages, options });
      if (base === undefined) return value;
      const list = parts.some(isList) ? { [field]: { of: base.position, parts } } : undefined;
      const same = isSame(options, base.options) ? { options: base.position } : undefined;
      return list === undefined && same === undefined ? value : { ...value, ...list, ...same };
    },
    whole: (record) => {
      position = record.position;
      if (isEndOfCall(record)) forget(fieldsOf(record) ?? {});
      const field = listField(record);
      return field === undefined ? record : resolved(record, field);
    },
  };
};

const isPosition = (value: unknown): value is number => typeof value === 'number';

const requests: ReadonlySet<string> = new Set(['preReasoning', 'preSummary', 'prePlanning']);

const listField = ({ kind, name }: Pick<RecordPlace, 'kind' | 'name'>): string | undefined => {
  if (kind === 'event') return requests.has(name) ? 'messages' : undefined;
  return name.endsWith(openEnd) ? 'history' : undefined;
};

export const openEnd = '/open';

export const isEndOfCall = ({ kind, name }: Pick<RecordPlace, 'kind' | 'name'>): boolean =>
  kind === 'event' && (name === 'postCall' || name === 'error');

/** The keys under which a record's list is searched: same type, last of its call, last of its agent. */
const keysOf = ({ kind, name }: RecordPlace, { callId, agent }: Fields): readonly string[] => {
  const call = kind === 'event' ? String(callId) : name.slice(0, -openEnd.length);
  const speaker: unknown = Array.isArray(agent) ? agent.at(-1) : agent;
  return [`${kind === 'event' ? name : ''} ${call}`, `last ${call}`, `agent:${String(speaker)}`];
};

export const fieldsOf = (record: StoredRecord): Fields | undefined => {
  try {
    const value = parsedText(record.name, record.text);
    return isRecord(value) ? value : undefined;
  } catch {
    // Readers report it.
    return undefined;
  }
};

export const lazily = ({ text: _, ...record }: StoredRecord, value: Fields): StoredRecord => ({
  ...record,
  get text() {
    return JSON.stringify(value);
  },
});

export const broken = ({ text: _, ...record }: StoredRecord, why?: string): StoredRecord => ({
  ...record,
  get text(): string {
    throw new MillraceError(
      'invalidState',
      `The record ${record.position} ('${record.name}') is damaged: it refers to missing messages.${why === undefined ? '' : ` ${why}`}`,
    );
  },
});

/** Resolves references to the messages of another list. */
export const messagesOf = (
  list: unknown,
  base: readonly unknown[],
): readonly unknown[] | undefined => {
  const parts = isRecord(list) ? list['parts'] : undefined;
  if (!isList(parts)) return undefined;
  const messages = parts.flatMap((part) => {
    if (!isList(part)) return [part];
    const [from, count] = part;
    if (!isPosition(from) || !isPosition(count) || from < 0 || count < 1) return [undefined];
    return from + count <= base.length ? base.slice(from, from + count) : [undefined];
  });
  return messages.includes(undefined) ? undefined : messages;
};

export const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

/** Replaces messages of another list by references `[from, count]`. */
export const partsOf = (list: readonly unknown[], base: readonly unknown[]): readonly unknown[] => {
  const parts: unknown[] = [];
  let places: ReadonlyMap<unknown, number> | undefined;
  let run: [from: number, count: number] | undefined;
  let next = 0;
  for (const message of list) {
    if (!isSame(message, base[next])) {
      places ??= new Map(base.map((it, index) => [idOf(it), index]));
      next = places.get(idOf(message)) ?? next;
      run = undefined;
    }
    if (isSame(message, base[next])) {
      if (run === undefined) parts.push((run = [next, 0]));
      run[1] += 1;
    } else {
      parts.push(message);
      run = undefined;
    }
    // Continues after it, even if this one was edited.
    if (idOf(message) === idOf(base[next])) next += 1;
  }
  return parts;
};

const idOf = (message: unknown): unknown => (isRecord(message) ? message['id'] : undefined);

const isSame = (one: unknown, other: unknown): boolean => {
  if (one === other) return other !== undefined;
  if (idOf(one) !== idOf(other) || other === undefined) return false;
  try {
    return JSON.stringify(one) === JSON.stringify(other);
  } catch {
    return false;
  }
};

export type Delta = EventOf<'reasoningChunk' | 'summaryChunk' | 'planningChunk'>;

export const isDelta = (event: AgentEvent): event is Delta =>
  deltaTypes.has(event.type) && 'kind' in event && isGrowing(event);

export const deltaTypes: ReadonlySet<string> = new Set([
  'reasoningChunk',
  'summaryChunk',
  'planningChunk',
]);

export const continues = (before: Delta, after: Delta): boolean =>
  before.type === after.type &&
  before.callId === after.callId &&
  before.messageId === after.messageId &&
  before.kind === after.kind &&
  before.textPhase === after.textPhase &&
  before.toolCall?.index === after.toolCall?.index &&
  before.toolCall?.id === after.toolCall?.id &&
  before.toolCall?.name === after.toolCall?.name;

export const deltaRecord = (first: Delta, more: readonly Delta[]): NewRecord => {
  const merged = [first, ...more].map(({ delta, seq, at }) => [
    delta,
    seq - first.seq,
    at - first.at,
  ]);
  return {
    kind: 'event',
    name: first.type,
    seq: more.at(-1)?.seq ?? first.seq,
    // A delta is plain: a replacer takes several times as long.
    text: JSON.stringify(more.length === 0 ? first : { ...first, delta: merged }),
  };
};

export const deltasOf = (record: StoredRecord): readonly StoredRecord[] => {
  const { kind, name } = record;
  if (kind !== 'event' || !deltaTypes.has(name)) return [record];
  if (!record.text.includes('"delta":[')) return [record];
  const value = fieldsOf(record);
  const { delta: merged, seq: firstSeq, at: firstAt } = value ?? {};
  if (!Array.isArray(merged)) return [record];
  return merged.map((part: unknown) => {
    const [delta, seq, at] = isList(part) ? part : [];
    const [toSeq, toAt] = [Number(firstSeq) + Number(seq), Number(firstAt) + Number(at)];
    if (typeof delta !== 'string' || Number.isNaN(toSeq + toAt)) return broken(record);
    const own = { ...value, delta, seq: toSeq, at: toAt };
    return withValue(lazily({ ...record, seq: toSeq }, own), own);
  });
};
