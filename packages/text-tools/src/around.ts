import type { Model } from 'millrace';
import { defined } from 'millrace/values';

/** Wraps a model: replaces `stream$` and keeps the rest. */
export const around = (
  { name, unsupported, keepsTime, toolsInPrompt }: Model,
  stream$: Model['stream$'],
): Model => ({ name, ...defined({ unsupported, keepsTime, toolsInPrompt }), stream$ });
