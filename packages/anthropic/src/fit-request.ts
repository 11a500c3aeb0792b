import type { ModelRequest } from '@millrace/core';

/** A request that the API takes, and what it lost for that: names of options, each with the circumstance. */
export interface Fitted {
  readonly request: ModelRequest;
  readonly dropped: readonly string[];
}

/**
 * Takes out of a request what the API refuses together with something else of it: a forced choice of tools and a
 * temperature while the model thinks, a temperature above 1, and stop sequences of nothing but white space.
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
      ...(stops.length < stopSequences.length
        ? [`'stopSequences' of nothing but white space`]
        : []),
    ],
  };
};
