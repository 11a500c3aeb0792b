import { defer, tap } from 'rxjs';
import { aroundModel } from '../../models/around-model.js';
import type { Model } from '../../models/model.js';
import { updatedUsage } from '../../phases/message-builder.js';
import { addUsage, countsIn, noUsage, type Usage } from '../../values/usage.js';

/** Receives the usage of a request, with the name of the model that answered; `isValid` is false if the model reported something that is no count. */
export type Meter = (usage: Usage, model: string, isValid: boolean) => void;

/**
 * Meters each request with the usage reported so far, even if it fails or is cancelled. A retry or a fallback is a request of its own. A value that is
 * no count of tokens, such as NaN or a negative number, counts as 0.
 */
export const withMeter = (model: Model, meter: Meter, beforeRequest = (): void => undefined) =>
  aroundModel(model, (request, context) =>
    defer(() => {
      beforeRequest();
      let { name } = model;
      let before = noUsage;
      let usage = noUsage;
      let isValid = true;
      const settle = (): void => {
        const total = addUsage(before, usage);
        const wasValid = isValid;
        before = noUsage;
        usage = noUsage;
        isValid = true;
        meter(total, name, wasValid);
      };
      return model
        .stream$(request, {
          ...context,
          report: (event) => {
            if (event.type === 'modelFallback' || event.type === 'modelRetry') {
              settle();
              name = event.type === 'modelRetry' ? event.model : event.to;
            }
            context.report(event);
          },
        })
        .pipe(
          tap({
            next: (chunk) => {
              if (chunk.type === 'usage') {
                const counts = countsIn(updatedUsage(usage, chunk.usage));
                usage = counts.usage;
                isValid &&= counts.isValid;
              }
              if (chunk.type !== 'restart' || chunk.isSameRequest === true) return;
              before = addUsage(before, usage);
              usage = noUsage;
            },
            complete: settle,
            error: settle,
            unsubscribe: settle,
          }),
        );
    }),
  );
