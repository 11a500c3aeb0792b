import { defer, from, isObservable, type Observable } from 'rxjs';
import type { Finish } from '../values/message.js';
import type { Model, ModelChunk, ModelContext, ModelRequest } from '../models/model.js';

/** One answer of a script: chunks, a stream of chunks, or a function of the request that returns either. */
export type ScriptedAnswer =
  | readonly ModelChunk[]
  | Observable<ModelChunk>
  | ((
      request: ModelRequest,
      context: ModelContext,
    ) => readonly ModelChunk[] | Observable<ModelChunk>);

/** A model that plays a script and records its requests. */
export interface ScriptedModel extends Model {
  /** The requests so far, oldest first. */
  readonly requests: readonly ModelRequest[];
  /** Throws if the script has unused answers. */
  verify(): void;
}

/**
 * Creates a model that gives the next answer of the script to each request, and errors if none is left. A list of
 * chunks without a `finish` gets one; a stream must have its own.
 *
 * @example
 * ```ts
 * const model = scriptedModel([toolCall('weather', { city: 'Oslo' })], [text('It snows.')]);
 * const reply = await createAgent({ model, tools: [weather] }).call('What is the weather in Oslo?');
 * expect(reply.text).toBe('It snows.');
 * model.verify(); // throws if answers are left
 * ```
 */
export const scriptedModel = (...answers: readonly ScriptedAnswer[]): ScriptedModel => {
  const requests: ModelRequest[] = [];
  return {
    name: 'scripted',
    requests,
    stream$: (request, context) =>
      defer(() => {
        const answer = answers[requests.push(request) - 1];
        if (answer === undefined) {
          throw new Error(
            `The script has ${answers.length} answer${answers.length === 1 ? '' : 's'}, and this is request ${requests.length}. Pass one more answer to scriptedModel(), such as [text('Done.')]: each tool call leads to another request.`,
          );
        }
        const given = typeof answer === 'function' ? answer(request, context) : answer;
        return isObservable(given) ? given : finished(given);
      }),
    verify: () => {
      if (requests.length < answers.length) {
        throw new Error(
          `The script has ${answers.length} answers, but only ${requests.length} were asked for.`,
        );
      }
    },
  };
};

const finished = (chunks: readonly ModelChunk[]): Observable<ModelChunk> =>
  from(chunks.at(-1)?.type === 'finish' ? chunks : [...chunks, finish()]);

/** A delta of text. */
export const text = (delta: string): ModelChunk => ({ type: 'text', text: delta });

/** A delta of thinking. */
export const thinking = (delta: string): ModelChunk => ({ type: 'thinking', text: delta });

/** A complete tool call. Without an id, the call assigns one. */
export const toolCall = (
  name: string,
  input: Readonly<Record<string, unknown>> = {},
  id?: string,
): ModelChunk => ({ type: 'toolCall', name, input, ...(id === undefined ? {} : { id }) });

/** The end of an answer. */
export const finish = (why: Finish | 'pause' = 'stop'): ModelChunk => ({
  type: 'finish',
  finish: why,
});
