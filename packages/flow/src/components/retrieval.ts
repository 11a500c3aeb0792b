import { createAgent, type Layer, textOf } from 'millrace';
import { isRecord } from 'millrace/values';
import { answerWith } from 'millrace/call';
import { addSources, numbered, type RetrievedPassage, type Retriever } from 'millrace/retrieval';
import { concatMap, defaultIfEmpty, defer, map, of, take } from 'rxjs';
import { attempts } from '../attempts.js';
import type { FlowRetry, RetrievalParams } from '../document.js';
import { render, templateOf } from '../render.js';
import { noOutput } from '../scope.js';
import { childCall, done, noModel, toResult, type Work } from '../work.js';

/** Retrieves passages, in its own call without a model, so that it emits events. */
export const retrievalWork = (
  id: string,
  { query = '{{sys.query}}', top_n = 5, retry }: RetrievalParams,
  retriever: Retriever,
): Work => {
  const template = templateOf(query);
  return (scope) =>
    defer(() => {
      const text = render(template, scope);
      if (text.trim() === '') return of(done(noOutput));
      const use = [retrieveLayer(retriever, text, top_n, retry)];
      return createAgent({ name: id, model: noModel, use })
        .call$(text, childCall(id, scope))
        .pipe(
          map((reply) =>
            toResult(reply, () => {
              const passages = reply.sources ?? [];
              return { text: textOf(reply), value: passages, passages, reply };
            }),
          ),
        );
    });
};

/** Answers a call with the passages for a query. */
const retrieveLayer = (
  retriever: Retriever,
  text: string,
  limit: number,
  retry: FlowRetry | undefined,
): Layer => ({
  name: 'retrieve',
  call: (context) => () => (call) => {
    const { perform, hooks, scheduler } = context;
    return perform<readonly RetrievedPassage[]>({
      kind: 'retrieve',
      id: 'retrieve',
      input: text,
      run: () =>
        defer(() =>
          retriever.retrieve$({
            text,
            limit,
            report: (message) => hooks.report(0, { type: 'warning', message }),
          }),
        ).pipe(
          attempts(retry, scheduler),
          take(1),
          defaultIfEmpty([]),
          map((found) => passagesIn(found).slice(0, limit)),
        ),
    }).pipe(
      concatMap((found) => {
        const answered = found.length > 0 ? addSources(call, found) : call;
        return answerWith(context, answered, numbered(found));
      }),
    );
  },
});

/** Validates passages of user code before they become part of a prompt. */
const passagesIn = (found: unknown): readonly RetrievedPassage[] => {
  if (Array.isArray(found) && found.every(isPassage)) return found;
  throw new TypeError('A retriever must emit a list of passages.');
};

const isPassage = (value: unknown): value is RetrievedPassage =>
  isRecord(value) && typeof value['source'] === 'string' && typeof value['text'] === 'string';
