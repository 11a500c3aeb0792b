import { answerTool, type JsonSchema, type Model, type ModelRequest } from 'millrace';

/**
 * Adds a tool for the structured answer if `isNeeded`, because the vendor cannot enforce the schema itself. Requests
 * with that tool go to `toolUser`. Default: the model.
 */
export const answerToolIf = (
  model: Model,
  isNeeded: (schema: JsonSchema, request: ModelRequest) => boolean,
  toolUser: Model = model,
): Model => {
  const byTool = answerTool(toolUser);
  return {
    ...model,
    stream$: (request, context) => {
      const { outputSchema } = request;
      const chosen = outputSchema !== undefined && isNeeded(outputSchema, request) ? byTool : model;
      return chosen.stream$(request, context);
    },
  };
};
