import {
  fromBatches,
  type MillraceError,
  type ModelChunk,
  type ModelContext,
} from '@millrace/core';
import { defer, type Observable } from 'rxjs';
import { cleanError } from './clean-error.js';
import { createDecode } from './decode.js';
import type { Exchange } from './exchange.js';
import { requestIdOf } from './failure.js';
import { failureOf } from './failure-of.js';
import { receive, type Reception } from './receive.js';
import { createRedactor } from './redactor.js';
import { wholeAnswer } from './whole-answer.js';

/**
 * Does one request and emits the chunks of its answer: text, tool uses, usage and one `finish`, behind which
 * there is at most usage. Cold: subscribing sends, unsubscribing aborts in the same tick, and the socket is
 * read only while `context.demand` is open. Errors with a `MillraceError` that holds no secret.
 */
export const exchange$ = (exchange: Exchange, context: ModelContext): Observable<ModelChunk> =>
  defer(() => {
    const redactor = createRedactor(exchange.secrets);
    let requestId: string | undefined;
    const reception: Reception = {
      clean: redactor.error,
      decode: createDecode({ ...exchange, redactor }),
      now: () => context.scheduler.now(),
      see: (headers) => {
        requestId = requestIdOf(headers);
      },
    };
    const fail = (thrown: unknown): MillraceError =>
      cleanError(failureOf(exchange.vendor, thrown, reception), redactor, requestId);
    return fromBatches((signal) => receive(exchange, signal, reception), context.demand).pipe(
      wholeAnswer(exchange.vendor, context, fail),
    );
  });
