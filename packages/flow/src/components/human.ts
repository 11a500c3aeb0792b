import { MillraceError, type Reply, suspend, textOf, tool, type ToolContext } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { defined, isRecord, parsedJson } from 'millrace/values';
import { defer, EMPTY, expand, last, map, type Observable, take } from 'rxjs';
import type { HumanField, HumanParams } from '../document.js';
import { limits } from '../limits.js';
import { asText, render, templateOf } from '../render.js';
import type { AskHuman, HumanRequest } from '../resources.js';
import type { Output } from '../scope.js';
import { toResult, type Work } from '../work.js';
import { value$ } from './code.js';
import { runOnce$ } from './tool.js';

/** Asks a person, as a tool call. Without a program that asks, the call is suspended, and the answer is its result. */
export const humanWork = (id: string, params: HumanParams, ask: AskHuman | undefined): Work => {
  const { message, choices, fields, timeout_ms: timeoutMs = limits.delay } = params;
  const template = templateOf(message);
  return (scope) =>
    defer(() => {
      const request: HumanRequest = {
        component: id,
        message: render(template, scope),
        ...defined({ choices, fields }),
      };
      const asTool = tool({
        name: 'ask_person',
        description: 'Asks a person.',
        input: jsonSchema({ type: 'object' }),
        timeoutMs,
        // A resumed call asks again: the person has not answered.
        idempotent: true,
        run: (_input: unknown, context) =>
          ask === undefined
            ? suspend(request, { from: 'program' })
            : answer$(ask, request, context, params),
      });
      // Several people may be asked in one call, and each answer is found by this ID.
      const toolCallId = [id.replaceAll(':', '.'), ...scope.idPrefix.split('/')].filter(Boolean);
      return runOnce$(id, asTool, { ...request }, scope, { toolCallId: toolCallId.join('-') });
    }).pipe(map((reply) => toResult(reply, (it) => outputOf(it, params))));
};

/** The number of times that a person is asked before an invalid answer is an error. */
const maxQuestions = 10;

const answer$ = (
  ask: AskHuman,
  request: HumanRequest,
  context: ToolContext,
  params: HumanParams,
): Observable<string> => {
  const asked$ = (it: HumanRequest, count: number) =>
    defer(() => value$(ask(it, context))).pipe(
      take(1),
      map((given) => ({ count, ...readAnswer(given, params) })),
    );
  return asked$(request, 1).pipe(
    expand(({ problem, count }) =>
      problem === undefined || count >= maxQuestions
        ? EMPTY
        : asked$({ ...request, problem }, count + 1),
    ),
    last(),
    map((answer) => asText(valid(answer))),
  );
};

/** The value of an answer, or why it is invalid. */
type Answer =
  | { readonly value: unknown; readonly problem?: undefined }
  | { readonly problem: string; readonly value?: undefined };

const valid = ({ value, problem }: Answer): unknown => {
  if (problem === undefined) return value;
  throw new MillraceError('invalidRequest', `The answer of the person is invalid: ${problem}`);
};

const outputOf = (reply: Reply, params: HumanParams): Output => {
  const value = valid(readAnswer(textOf(reply), params));
  const text = asText(value);
  return typeof value === 'string' ? { text, reply } : { text, value };
};

const readAnswer = (given: unknown, { choices, fields }: HumanParams): Answer => {
  if (fields === undefined) return readText(asText(given).trim(), choices);
  const form: unknown = typeof given === 'string' ? parsedJson(given) : given;
  if (!isRecord(form)) return { problem: `It must be an object with ${namesOf(fields)}.` };
  const unknown = Object.keys(form).find((name) => !Object.hasOwn(fields, name));
  if (unknown !== undefined) {
    return { problem: `There is no field '${unknown}'. The fields are ${namesOf(fields)}.` };
  }
  const read = Object.entries(fields).map(([name, field]) => ({
    name,
    ...readField(name, field, form[name]),
  }));
  const problem = read.find((it) => it.problem !== undefined)?.problem;
  if (problem !== undefined) return { problem };
  return {
    value: Object.fromEntries(
      read.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
    ),
  };
};

const namesOf = (fields: Readonly<Record<string, HumanField>>): string =>
  Object.keys(fields).join(', ');

/** Choices match without case, because people type them. */
const readText = (text: string, choices: readonly string[] | undefined): Answer => {
  if (text === '') return { problem: 'It is empty.' };
  if (choices === undefined) return { value: text };
  const found = choices.find((choice) => choice.toLowerCase() === text.toLowerCase());
  return found === undefined
    ? { problem: `It must be one of these: ${choices.join(', ')}.` }
    : { value: found };
};

const readField = (
  name: string,
  { type, choices, required = true }: HumanField,
  given: unknown,
): Answer => {
  if (given === undefined || given === null || given === '') {
    return required ? { problem: `'${name}' is missing.` } : { value: undefined };
  }
  switch (type) {
    case 'text':
      return { value: asText(given) };
    case 'number': {
      const value = typeof given === 'string' ? parsedJson(given.trim()) : given;
      return typeof value === 'number' ? { value } : { problem: `'${name}' must be a number.` };
    }
    case 'boolean': {
      const word = asText(given).trim().toLowerCase();
      if (['true', 'yes', 'y'].includes(word)) return { value: true };
      if (['false', 'no', 'n'].includes(word)) return { value: false };
      return { problem: `'${name}' must be yes or no.` };
    }
    case 'choice': {
      const { value, problem } = readText(asText(given).trim(), choices);
      return problem === undefined ? { value } : { problem: `'${name}': ${problem}` };
    }
  }
};
