import { isDeepStrictEqual } from 'node:util';
import { weatherOf } from '../lookup.js';
import { Refusal } from './refusal.js';
import type { Said, ToolResult } from './said.js';
import type { Script } from './script.js';
import { toolCallsOf } from './tool-call.js';

/** Where a conversation has come to. */
export interface Place {
  /** Messages of the model that stand behind the last user message: the turn of the script. */
  readonly turn: number;
  /** All messages of the model: the number of the next one, so that no two have the same ids. */
  readonly message: number;
}

/**
 * Tells where a conversation has come to. Throws a `Refusal` where a provider would not take it, or where the work of the
 * script has not been done.
 */
export const placeIn = (said: readonly Said[], script: Script): Place => {
  checkResults(said);
  const question = said.findLastIndex(({ role }) => role === 'user');
  if (question === -1) throw new Refusal('There is no user message.');
  if (said.at(-1)?.role === 'assistant') throw new Refusal('The last message is the model’s own.');
  const before = said.slice(0, question).filter(({ role }) => role === 'assistant').length;
  const turns = turnsBehind(said.slice(question + 1));
  if (turns.length > script.turns) {
    throw new Refusal(`${turns.length} turns have asked for tools, not ${script.turns}.`);
  }
  for (const [turn, one] of turns.entries()) checkTurn(one, before + turn, script.tools);
  return { turn: turns.length, message: before + turns.length };
};

/** Every result answers a tool use of the message before it, and every tool use has one. */
const checkResults = (said: readonly Said[]): void => {
  let waiting = new Set<string>();
  for (const step of said) {
    if (step.role === 'tool') {
      for (const { id } of step.results) {
        if (!waiting.delete(id))
          throw new Refusal(`The result '${id}' answers no tool use before it.`);
      }
    } else {
      mustBeAnswered(waiting);
      waiting = new Set(step.role === 'assistant' ? step.uses.map(({ id }) => id) : []);
    }
  }
  mustBeAnswered(waiting);
};

const mustBeAnswered = (waiting: ReadonlySet<string>): void => {
  if (waiting.size > 0)
    throw new Refusal(`These tool uses have no result: ${[...waiting].join(', ')}.`);
};

interface Turn {
  readonly uses: Extract<Said, { role: 'assistant' }>['uses'];
  readonly results: readonly ToolResult[];
}

const turnsBehind = (said: readonly Said[]): readonly Turn[] => {
  const turns: { readonly uses: Turn['uses']; readonly results: ToolResult[] }[] = [];
  for (const step of said) {
    if (step.role === 'assistant') turns.push({ uses: step.uses, results: [] });
    else if (step.role === 'tool') turns.at(-1)?.results.push(...step.results);
  }
  return turns;
};

const checkTurn = ({ uses, results }: Turn, message: number, tools: number): void => {
  const asked = toolCallsOf(message, tools);
  if (!isDeepStrictEqual(uses.map(readable), asked.map(readable))) {
    throw new Refusal(
      `The tool uses of message ${message} are not the ${tools} that it asked for.`,
    );
  }
  const said = new Map(results.map(({ id, text }) => [id, text]));
  for (const [day, { id }] of asked.entries()) {
    if (!said.get(id)?.includes(weatherOf('Oslo', day))) {
      throw new Refusal(`The result '${id}' is not what the tool says.`);
    }
  }
};

/** A use with its arguments as they are meant: they may be written otherwise. */
const readable = ({ id, name, json }: Turn['uses'][number]) => ({ id, name, input: parsed(json) });

const parsed = (json: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
};
