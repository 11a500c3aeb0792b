import { defer, tap } from 'rxjs';
import type { Model } from '../model.js';
import { around } from '../models/around.js';
import { updatedUsage } from '../updated-usage.js';
import { addUsage, noUsage, type Usage } from '../usage.js';

/** Hears what a request has cost, and which model has answered it. */
export type Meter = (usage: Usage, model: string) => void;

/**
 * Tells a meter what each request costs, as its provider reports it: also of one that fails or is left, as far as it has been told by then. `begin` is called
 * before it is sent, and may throw. Behind a fallback, what follows is of the model that took over.
 */
export const metered = (model: Model, meter: Meter, begin: (model: string) => void): Model =>
  around(model, (request, context) =>
    defer(() => {
      begin(model.name);
      let { name } = model;
      let before = noUsage;
      let usage = noUsage;
      const settle = (): void => {
        const total = addUsage(before, usage);
        before = noUsage;
        usage = noUsage;
        meter(total, name);
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
              if (chunk.type === 'usage') usage = updatedUsage(usage, chunk.usage);
              if (chunk.type !== 'restart') return;
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
