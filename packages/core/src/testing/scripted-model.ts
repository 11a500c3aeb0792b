import { defer, from, isObservable, type Observable } from 'rxjs';
import type { Finish } from '../values/message.js';
import type { Model, ModelChunk, ModelContext, ModelRequest } from '../models/model.js';

/** One answer of the script: its chunks, a stream of them, or a function of the request that gives either. */
export type ScriptedAnswer =
  | readonly ModelChunk[]
  | Observable<ModelChunk>
  | ((
      request: ModelRequest,
      context: ModelContext,
    ) => readonly ModelChunk[] | Observable<ModelChunk>);

/** A model that plays a script, and remembers what it was asked. */
export interface ScriptedModel extends Model {
  /** The requests it has got, oldest first. */
  readonly requests: readonly ModelRequest[];
  /** Throws where answers of the script have not been asked for. */
  verify(): void;
}

/** Makes a model that gives the next answer of the script to each request, and errors on one too many. A list of chunks that does not end with a `finish` gets one; a stream must bring its own. */
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
            `The script has ${answers.length} answers, and this is request ${requests.length}.`,
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

/** A whole tool use. Without an id, the call gives it one. */
export const toolUse = (
  name: string,
  input: Readonly<Record<string, unknown>> = {},
  id?: string,
): ModelChunk => ({ type: 'toolUse', name, input, ...(id === undefined ? {} : { id }) });

/** The end of an answer. */
export const finish = (why: Finish | 'pause' = 'stop'): ModelChunk => ({
  type: 'finish',
  finish: why,
});
