import type { Model } from '../model.js';
import { answerTool } from './answer-tool.js';
import { inTime } from './in-time.js';

/** Readies a model for a request: it keeps time, and answers in the form that is asked for. */
export const ready = (model: Model): Model =>
  inTime(model.unsupported?.includes('outputSchema') === true ? answerTool(model) : model);
