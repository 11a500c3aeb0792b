import { type Agent, createAgent, type Message, type Model, type ModelChunk, tool } from 'millrace';
import { type CallStoreDriver, createCallStore, journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { concatMap, defer, delay, from, of } from 'rxjs';
import { lookup, weatherOf } from '../lookup.js';
import { deltasOf } from '../mock/answer.js';
import { readScript, type Script } from '../mock/script.js';
import { toolCallsOf } from '../mock/tool-call.js';

/** An agent over a model in the process, which answers at once: `10x2-1` asks for two tools in each of ten turns, then answers. */
export const loopAgent = (
  name: string,
  calls: CallStoreDriver | undefined,
  { events = true }: { readonly events?: boolean } = {},
): Agent => {
  const script = readScript(name);
  if (script === undefined) throw new Error(`'${name}' is no script.`);
  return createAgent({
    name: 'loop',
    model: loopModel(name, script),
    tools: [lookupTool],
    limits: { maxIterations: 1_000 },
    ...(calls && { use: [journal(createCallStore(calls, events ? {} : { events: () => false }))] }),
  });
};

/** The steps of a call: what it begins and opens with, each turn with what is decided of each tool and what came of it, the answer, and the reply. */
export const stepsOf = (name: string): number => {
  const { turns = NaN, tools = NaN } = readScript(name) ?? {};
  return 2 + turns * (1 + 2 * tools) + 2;
};

const finish: ModelChunk = { type: 'finish', finish: 'stop' };

const loopModel = (name: string, { turns, tools, deltas, gapMs }: Script): Model => {
  const answer = [...deltasOf(deltas).map((text): ModelChunk => ({ type: 'text', text })), finish];
  const asking = Array.from({ length: turns }, (_, turn) => [
    ...toolCallsOf(turn, tools).map((use, index): ModelChunk => ({
      type: 'toolCall',
      index,
      ...use,
    })),
    finish,
  ]);
  const chunksFor = (messages: readonly Message[]): readonly ModelChunk[] =>
    asking[messages.filter(({ role }) => role === 'tool').length] ?? answer;
  return {
    name,
    stream$: ({ messages }) =>
      defer(() => {
        const chunks$ = from(chunksFor(messages));
        return gapMs === 0
          ? chunks$
          : chunks$.pipe(concatMap((chunk) => of(chunk).pipe(delay(gapMs))));
      }),
  };
};

const lookupTool = tool({
  name: lookup.name,
  description: lookup.description,
  input: jsonSchema(lookup.parameters),
  run: ({ city, day }) => weatherOf(city, day),
});
