import type { ModelRequest } from 'millrace';

/** A supported request, and the names of the options that were dropped, each with the reason. */
export interface Fitted {
  readonly request: ModelRequest;
  readonly dropped: readonly string[];
}

/**
 * Drops options that the API rejects: a forced tool choice or a temperature while the model thinks, a temperature above
 * 1, and blank stop sequences.
 */
export const fitRequest = (request: ModelRequest, isThinking: boolean): Fitted => {
  const { toolChoice, temperature, stopSequences = [], ...rest } = request;
  const isForced = isThinking && (toolChoice === 'required' || typeof toolChoice === 'object');
  const isWarm = isThinking && temperature !== undefined;
  const isHot = !isThinking && temperature !== undefined && temperature > 1;
  const stops = stopSequences.filter((stop) => stop.trim() !== '');
  return {
    request: {
      ...rest,
      ...(toolChoice === undefined || isForced ? {} : { toolChoice }),
      ...(temperature === undefined || isWarm || isHot ? {} : { temperature }),
      ...(stops.length === 0 ? {} : { stopSequences: stops }),
    },
    dropped: [
      ...(isForced ? [`'toolChoice' while it thinks`] : []),
      ...(isWarm ? [`'temperature' while it thinks`] : []),
      ...(isHot ? [`'temperature' above 1`] : []),
      ...(stops.length < stopSequences.length ? [`blank 'stopSequences'`] : []),
    ],
  };
};
