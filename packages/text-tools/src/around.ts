import type { Model } from '@millrace/core';
import { defined } from '@millrace/core/values';

/** Wraps a model: replaces `stream$` and keeps the rest. */
export const around = (
  { name, unsupported, keepsTime, toolsInPrompt }: Model,
  stream$: Model['stream$'],
): Model => ({ name, ...defined({ unsupported, keepsTime, toolsInPrompt }), stream$ });
