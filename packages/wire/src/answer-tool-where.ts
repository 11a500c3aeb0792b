import { answerTool, type JsonSchema, type Model, type ModelRequest } from '@millrace/core';
import { around } from '@millrace/core/adapter';

/**
 * Lets a model answer by a tool where its vendor cannot hold the answer to a schema, and else by itself. `toolUser`
 * stands for the model where it is to use the tool. Default: the model.
 */
export const answerToolWhere = (
  model: Model,
  isNeeded: (schema: JsonSchema, request: ModelRequest) => boolean,
  toolUser: Model = model,
): Model => {
  const byTool = answerTool(toolUser);
  return around(model, (request, context) => {
    const { outputSchema } = request;
    const asked = outputSchema !== undefined && isNeeded(outputSchema, request) ? byTool : model;
    return asked.stream$(request, context);
  });
};
