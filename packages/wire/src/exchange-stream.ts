import {
  fromBatches,
  type MillraceError,
  type ModelChunk,
  type ModelContext,
} from '@millrace/core';
import { defer, type Observable } from 'rxjs';
import { createDecode } from './decode.js';
import { endAfterFinish } from './end-after-finish.js';
import type { Exchange } from './exchange.js';
import { requestIdOf } from './failure.js';
import { failureOf } from './failure-of.js';
import { receive, type ReceiveOptions } from './receive.js';
import { redactError } from './redact-error.js';
import { createRedactor } from './redactor.js';

/**
 * Sends one request and emits the chunks of its answer: text, tool calls, usage and one `finish`. Only usage may follow
 * the finish. Cold: subscribing sends, unsubscribing aborts in the same tick, and the socket is read only while
 * `context.demand` is open. Errors with a `MillraceError` without secrets.
 */
export const exchange$ = (exchange: Exchange, context: ModelContext): Observable<ModelChunk> =>
  defer(() => {
    const redactor = createRedactor(exchange.secrets);
    let requestId: string | undefined;
    const reception: ReceiveOptions = {
      clean: redactor.error,
      decode: createDecode({ ...exchange, redactor }),
      now: () => context.scheduler.now(),
      onHeaders: (headers) => {
        requestId = requestIdOf(headers);
      },
    };
    const fail = (thrown: unknown): MillraceError =>
      redactError(failureOf(exchange.vendor, thrown, reception), redactor, requestId);
    return fromBatches((signal) => receive(exchange, signal, reception), context.demand).pipe(
      endAfterFinish(exchange.vendor, context, fail),
    );
  });
