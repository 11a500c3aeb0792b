import { defer, tap } from 'rxjs';
import type { Model } from '../model.js';
import { around } from '../models/around.js';
import { checkModel } from '../models/check-model.js';
import { updatedUsage } from '../updated-usage.js';
import { noUsage, type Usage } from '../usage.js';
import { weighRequest } from './count-request.js';
import type { TokenCounter } from './token-counter.js';

/**
 * Tells a counter what each request to a model was counted as, and what the provider says that it was. It stands around the model because only there
 * a request is what is sent: an overflow may have shortened it. A provider that reports nothing teaches nothing, and neither does a request that is mostly media.
 */
export const learnUsage = (model: Model, counter: TokenCounter): Model => {
  checkModel('learnUsage()', model);
  if (counter.learn === undefined) return model;
  const { name } = model;
  return around(model, (request, context) =>
    defer(() => {
      let usage = noUsage;
      let sent = request;
      const shortened = (messages: typeof request.messages): void => {
        sent = { ...request, messages };
        context.shortened?.(messages);
      };
      return model.stream$(request, { ...context, shortened }).pipe(
        tap({
          next: (chunk) => {
            if (chunk.type === 'usage') usage = updatedUsage(usage, chunk.usage);
            else if (chunk.type === 'restart') usage = noUsage;
          },
          complete: () => {
            const { text: estimated, media } = weighRequest(counter, sent);
            const actual = inputOf(usage);
            if (actual === 0 || media > estimated / 10) return;
            counter.learn?.({ estimated, actual: actual - media, model: name });
          },
        }),
      );
    }),
  );
};

const inputOf = ({ inputTokens, cacheReadTokens, cacheWriteTokens }: Usage): number =>
  inputTokens + cacheReadTokens + cacheWriteTokens;
