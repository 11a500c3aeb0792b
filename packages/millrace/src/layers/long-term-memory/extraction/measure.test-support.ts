import { addUsage, createAgent, type Model, noUsage, tool, type Usage } from '../../../index.js';
import {
  inProcessLongTermMemory,
  type LongTermMemory,
  type MemoryEntry,
  withLongTermMemory,
  extractMemories,
} from '../index.js';
import type { MemoryExtraction } from './extract-memories.js';
import { jsonSchema } from '../../../schema/index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../../../testing/index.js';
import {
  concat,
  concatMap,
  defer,
  from,
  ignoreElements,
  map,
  type Observable,
  toArray,
} from 'rxjs';
import type { Dialogue, Exchange, Person } from './dialogues.test-support.js';
import { tokensIn } from './rule-extractor.test-support.js';

/** Right and all entries of a store or a search, and the facts found among those there are. */
export interface Counts {
  readonly right: number;
  readonly entries: number;
  readonly found: number;
  readonly facts: number;
}

export interface Score {
  /** After each session: the entries that state a fact that holds, and the facts that an entry states. */
  readonly stored: Counts;
  /** The same for the three entries that each question recalls. */
  readonly recalled: Counts;
  /** Questions whose recalled entries state something that was true once. */
  readonly stale: number;
  readonly questions: number;
  /** Recalled entries of other users. */
  readonly crossed: number;
  readonly refused: number;
  readonly failed: number;
  /** Of all entries that the users have in the end. */
  readonly tokensStored: number;
  readonly usage: Usage;
  readonly requests: number;
  /** The texts that state no fact that holds, and the facts that no entry states. */
  readonly wrong: readonly string[];
  readonly missed: readonly string[];
}

const nothing: Counts = { right: 0, entries: 0, found: 0, facts: 0 };

const noScore: Score = {
  stored: nothing,
  recalled: nothing,
  stale: 0,
  questions: 0,
  crossed: 0,
  refused: 0,
  failed: 0,
  tokensStored: 0,
  usage: noUsage,
  requests: 0,
  wrong: [],
  missed: [],
};

/** A way to remember: a memory to recall from, and work that must be done before it is complete. */
interface Way {
  readonly memory: LongTermMemory;
  readonly extraction?: MemoryExtraction;
}

/** Holds all dialogues, and scores what is remembered: facts that `model` extracts, or without one the turns as they are. */
export const measured$ = (people: readonly Person[], model?: Model): Observable<Score> =>
  defer(() => {
    const memory = inProcessLongTermMemory();
    const way: Way =
      model === undefined
        ? { memory }
        : extracted(extractMemories({ model, memory, quietMs: 60_000 }));
    const events: Partial<Score>[] = [];
    way.extraction?.events$.subscribe((event) => {
      const { usage } = event;
      const failed = event.type === 'extractionFailed' ? 1 : 0;
      const refused = event.type === 'memoriesExtracted' ? event.refused.length : 0;
      events.push({ usage, failed, refused, requests: 1 });
    });
    return from(people).pipe(
      concatMap((person) => scored$(person, way)),
      toArray(),
      map((scores) => {
        way.extraction?.close();
        return [...scores, ...events].reduce<Score>(sum, noScore);
      }),
    );
  });

const extracted = (extraction: MemoryExtraction): Way => ({
  memory: extraction.facts,
  extraction,
});

const scored$ = (person: Person, way: Way): Observable<Partial<Score>> =>
  concat(
    from(person.sessions).pipe(
      concatMap((dialogue, index) =>
        concat(
          held$(person, dialogue, index, way).pipe(ignoreElements()),
          way.extraction?.flush$() ?? [],
          all$(person, way).pipe(map((entries) => storedScore(person, dialogue, entries))),
        ),
      ),
    ),
    from(person.questions).pipe(
      concatMap((question) =>
        way.memory.recall$({ userId: person.userId }, { text: question.text, limit: 3 }).pipe(
          map((entries): Partial<Score> => {
            const { answers, stale } = question;
            const isStale = entries.some((entry) => stale?.test(entry.text) === true);
            return {
              recalled: countsIn(person, answers, entries),
              stale: isStale ? 1 : 0,
              questions: 1,
              crossed: entries.filter(({ scope }) => scope.userId !== person.userId).length,
            };
          }),
        ),
      ),
    ),
    all$(person, way).pipe(
      map((entries): Partial<Score> => ({
        tokensStored: entries.reduce((total, entry) => total + tokensIn(entry.text), 0),
      })),
    ),
  );

const all$ = ({ userId }: Person, { memory }: Way): Observable<readonly MemoryEntry[]> =>
  memory.recall$({ userId }, { text: '', limit: 1_000 });

/** Holds a dialogue with an agent whose model gives the answers of the script. */
const held$ = (
  { userId }: Person,
  { turns }: Dialogue,
  index: number,
  { memory, extraction }: Way,
): Observable<unknown> =>
  from(turns).pipe(
    concatMap((exchange, at) => {
      const [asked, , found = ''] = exchange;
      const lookUp = tool({
        name: 'look_up',
        description: 'Looks something up.',
        input: jsonSchema({ type: 'object', properties: {} }),
        run: () => found,
      });
      const options = {
        model: scriptedModel(...answersOf(exchange)),
        tools: [lookUp],
        use: extraction === undefined ? [] : [extraction],
      };
      const agent = createAgent(withLongTermMemory(options, { memory }));
      const callId = `${userId}/${index}/${at}`;
      return agent.call$(asked, { callId, metadata: { userId } });
    }),
  );

const answersOf = ([, answer, found]: Exchange): readonly ScriptedAnswer[] => [
  ...(found === undefined ? [] : [[toolCall('look_up')]]),
  [text(answer)],
];

const storedScore = (
  person: Person,
  { gold }: Dialogue,
  entries: readonly MemoryEntry[],
): Partial<Score> => ({
  stored: countsIn(person, gold, entries),
  wrong: entries.filter((entry) => !states(person, gold, entry)).map(({ text: it }) => it),
  missed: gold.filter((name) => !entries.some((entry) => states(person, [name], entry))),
});

const states = ({ facts }: Person, names: readonly string[], entry: MemoryEntry): boolean =>
  names.some((name) => facts[name]?.test(entry.text) === true);

const countsIn = (
  person: Person,
  names: readonly string[],
  entries: readonly MemoryEntry[],
): Counts => ({
  right: entries.filter((entry) => states(person, names, entry)).length,
  entries: entries.length,
  found: names.filter((name) => entries.some((entry) => states(person, [name], entry))).length,
  facts: names.length,
});

const sum = (a: Score, b: Partial<Score>): Score => {
  const add = (x: Counts, y: Counts = nothing): Counts => ({
    right: x.right + y.right,
    entries: x.entries + y.entries,
    found: x.found + y.found,
    facts: x.facts + y.facts,
  });
  return {
    stored: add(a.stored, b.stored),
    recalled: add(a.recalled, b.recalled),
    stale: a.stale + (b.stale ?? 0),
    questions: a.questions + (b.questions ?? 0),
    crossed: a.crossed + (b.crossed ?? 0),
    refused: a.refused + (b.refused ?? 0),
    failed: a.failed + (b.failed ?? 0),
    tokensStored: a.tokensStored + (b.tokensStored ?? 0),
    usage: addUsage(a.usage, b.usage ?? noUsage),
    requests: a.requests + (b.requests ?? 0),
    wrong: [...a.wrong, ...(b.wrong ?? [])],
    missed: [...a.missed, ...(b.missed ?? [])],
  };
};
