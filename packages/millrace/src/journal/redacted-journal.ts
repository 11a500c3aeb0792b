import { map, defer } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { isRecord, parsedJson } from '../values/json.js';
import type { JournalStore, OpenJournal } from './call-store-driver.js';
import { deltaTypes } from './compact-log.js';
import { eventText, parsedText, stepText, storedEvent } from './record-json.js';

/** Returns the string to record instead. It must leave ids as they are. */
export type Redact = (text: string) => string;

/** A store that records what `redact` returns for each string. The call itself keeps its own values. */
export const redactedStore = (store: JournalStore, redact: Redact): JournalStore => ({
  open$: (callId, run) => store.open$(callId, (journal) => run(redacted(journal, redact))),
});

const redacted = (journal: OpenJournal, redact: Redact): OpenJournal => {
  const { listener } = journal;
  return {
    ...journal,
    step$: (id, work) =>
      defer(() => {
        let made: { readonly value: unknown } | undefined;
        const record = (value: unknown): unknown => {
          made = { value };
          return parsedText(`The step '${id}'`, redactedText(stepText(id, value), redact));
        };
        return journal
          .step$(id, () => work().pipe(map(record)))
          .pipe(map((value) => (made === undefined ? value : made.value)));
      }),
    ...(listener && {
      listener: {
        hears: () => listener.hears(),
        next: (event, report) => listener.next(redactedEvent(event, redact), report),
      },
    }),
  };
};

const redactedEvent = (event: AgentEvent, redact: Redact): AgentEvent => {
  const { type, callId, seq } = event;
  const text = redactedText(eventText(withoutParts(event)), redact);
  return storedEvent(callId, { kind: 'event', name: type, seq, position: 0, text });
};

/** A part may hold half of a secret, so no part is recorded: the whole text follows. */
const withoutParts = (event: AgentEvent): AgentEvent => {
  if ('delta' in event && deltaTypes.has(event.type)) return { ...event, delta: '' };
  return event.type === 'actingChunk' && typeof event.value === 'string'
    ? { ...event, value: '' }
    : event;
};

const redactedText = (json: string, redact: Redact): string =>
  JSON.stringify(cleaned(parsedJson(json), redact));

const cleaned = (value: unknown, redact: Redact): unknown => {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((item) => cleaned(item, redact));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [redact(key), cleaned(item, redact)]),
  );
};
