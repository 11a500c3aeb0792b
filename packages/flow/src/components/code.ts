import { type Reply, textOf, tool, toolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { defer, from, isObservable, last, map, type Observable, of } from 'rxjs';
import { attempts } from '../attempts.js';
import type { CodeParams } from '../document.js';
import { asText, fillRecord } from '../render.js';
import type { FlowFunction } from '../resources.js';
import type { Output } from '../scope.js';
import { toResult, type Work } from '../work.js';
import { runOnce$ } from './tool.js';

/** Calls a function of the program. Code in a document is never run. */
export const codeWork = (
  id: string,
  { function: name, input = {}, retry }: CodeParams,
  call: FlowFunction,
): Work => {
  const asTool = tool({
    name: id.replaceAll(':', '.'),
    description: `The function '${name}'.`,
    input: jsonSchema({ type: 'object' }),
    run: (given: Readonly<Record<string, unknown>>, context) =>
      defer(() => value$(call(given, context))).pipe(
        attempts(retry, context.scheduler),
        map((value) => toolOutput(resultOf(value))),
      ),
  });
  return (scope) =>
    defer(() => runOnce$(id, asTool, fillRecord(input, scope), scope)).pipe(
      map((reply) => toResult(reply, outputOf)),
    );
};

/** A value, a Promise, or the last value of an Observable. */
export const value$ = (returned: unknown): Observable<unknown> => {
  if (isObservable(returned)) return returned.pipe(last(undefined, undefined));
  return isPromiseLike(returned) ? from(returned) : of(returned);
};

const isPromiseLike = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' &&
  value !== null &&
  'then' in value &&
  typeof value.then === 'function';

/** Keeps a value other than a string as JSON. */
export const resultOf = (
  value: unknown,
): { readonly content: string; readonly details?: { readonly value: unknown } } => {
  if (typeof value === 'string') return { content: value };
  const content = asText(value);
  return content === '' ? { content } : { content, details: { value: JSON.parse(content) } };
};

export const outputOf = (reply: Reply): Output => {
  const text = textOf(reply);
  const { output: details } = reply;
  return typeof details === 'object' && details !== null && 'value' in details
    ? { text, value: details.value }
    : { text };
};
