import type { Choice } from './choose-tool.js';
import { unsayable } from './line-range.js';
import { givesTime, isClock } from './present-time.js';
import type { Toolbox, ToolReading } from './read-tools.js';
import { shorten } from './shorten.js';
import { withoutPoliteness } from './without-politeness.js';
import { senseOf, stemOf, wordsOf } from './words.js';

/** A part of a question, as far as an objection needs it. */
export interface Objectionable {
  readonly text: string;
  /** The condition that it hangs on, or nothing. */
  readonly given: string;
  readonly choice: Choice | undefined;
}

/** Says why a part is left, although a tool may seem to fit it: it was forbidden, or no tool can do what it says. */
export const objectionTo = (part: Objectionable, toolbox: Toolbox): string | undefined => {
  const { text, given, choice } = part;
  const quoted = `“${shorten(text)}”`;
  if (isForbidden(text, choice)) return `I leave ${quoted}, as you ask.`;
  const verb = changeIn(text, choice);
  if (verb !== undefined && !canChange(verb, toolbox))
    return `${noChange(verb, toolbox)}: I leave ${quoted}.`;
  const clock = clockFor(part, toolbox);
  if (clock !== undefined && (givesTime(text) || givesTime(given)))
    return `No tool here converts a given time: ${clock.name} only tells what time it is now, so I leave ${quoted}.`;
  if (choice === undefined) return undefined;
  const { tool, filling } = choice;
  const quantity = filling.spans.length > 0 ? unsayable(tool.slots, text) : undefined;
  return quantity === undefined
    ? undefined
    : `No parameter of ${tool.name} can say “${quantity}”, so I leave ${quoted}.`;
};

const clockFor = (
  { text, choice }: Objectionable,
  { tools: all }: Toolbox,
): ToolReading | undefined => {
  if (choice !== undefined) return isClock(choice.tool) ? choice.tool : undefined;
  return /\bwhat (?:time|day|date)\b/iu.test(text) ? all.find(isClock) : undefined;
};

/** Says what an answer from the chosen tool leaves open. */
export const remarkOn = (text: string, { tool }: Choice): string | undefined =>
  isClock(tool) && /\b(?:difference|apart|ahead|behind)\b/iu.test(text)
    ? 'The difference itself is computed by no tool here.'
    : undefined;

/** `don't tell me the time`, `… but do not use the calculator`, `… without using the clock` */
const isForbidden = (text: string, choice: Choice | undefined): boolean => {
  if (forbidding.test(withoutPoliteness(text))) return true;
  if (/^(?:how|why|when|which)\b/iu.test(withoutPoliteness(text))) return false;
  const denied = wordsOf(deniedTool.exec(text)?.groups?.['tool'] ?? '');
  const own = choice?.tool.ownStems ?? new Set<string>();
  return denied.some((word) => word.length > 2 && (tools.has(word) || own.has(stemOf(word))));
};

const forbidding =
  /^(?:(?:please|but|so) )*(?:do not|don['’]?t|never|no need to) (?!(?:i|you|we|they|forget|hesitate|worry)\b)\p{L}+/iu;

const deniedTool =
  /\b(?:(?:do not|don['’]?t|never) (?:use|call|ask|run)|without (?:using|calling|asking))(?<tool>(?: [\w-]+){1,3})/iu;

const tools = new Set(['tool', 'tools']);

/** The verb of a part that wants something changed. */
const changeIn = (text: string, choice: Choice | undefined): string | undefined => {
  const request = withoutPoliteness(text);
  const verb = /^(?:get rid of|[a-z]+)\b/iu.exec(request)?.[0].toLowerCase();
  const isArithmetic =
    choice?.filling.telling === true && choice.tool.slots.some(({ kind }) => kind === 'expression');
  if (verb === undefined || isArithmetic) return undefined;
  if (always.has(verb)) return verb === 'get rid of' ? 'delete' : verb;
  return ofFiles.has(verb) && (file.test(request) || isPathIn(choice)) ? verb : undefined;
};

const always = new Set(
  'delete,remove,erase,rename,edit,overwrite,modify,append,uninstall,deploy,get rid of'.split(','),
);

const ofFiles = new Set(
  'write,create,make,move,add,change,update,replace,set,copy,save,clear,fix,insert,put,touch,drop,empty,truncate'.split(
    ',',
  ),
);

const file =
  /\b(?:files?|folders?|director(?:y|ies)|lines?|sections?|licen[cs]e|readme|changelog|repo|repository)\b|[\w-]\.[a-z]\w{0,5}\b/iu;

const isPathIn = (choice: Choice | undefined): boolean =>
  choice?.tool.slots.some(({ kind }) => kind === 'path') === true &&
  choice.filling.spans.length > 0;

const canChange = (verb: string, { tools: all }: Toolbox): boolean => {
  const stem = stemOf(verb);
  return all.some(
    ({ vocabulary, ownStems, isChanging }) =>
      ownStems.has(stem) || ownStems.has(senseOf(stem)) || (isChanging && vocabulary.has(stem)),
  );
};

const noChange = (verb: string, { tools: all }: Toolbox): string =>
  all.some(({ isChanging }) => isChanging)
    ? `No tool here can ${verb} that`
    : 'No tool here can delete or change anything';
