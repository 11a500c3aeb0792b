import { answerTool, type Model } from '@millrace/core';
import type { Profile } from './profile.js';

/**
 * Lets a model answer by a tool where its vendor cannot hold it to a schema while it has tools to ask for: there the
 * schema would keep it from asking.
 */
export const nativeOutput = (model: Model, profile: Profile): Model => {
  if (profile.nativeOutput !== 'withoutTools') return model;
  const byTool = answerTool(model);
  return {
    ...model,
    stream$: (request, context) => {
      const { outputSchema, tools = [] } = request;
      const asked = outputSchema !== undefined && tools.length > 0 ? byTool : model;
      return asked.stream$(request, context);
    },
  };
};
