/** What every adapter asks. */
export const question = 'What is the weather?';

/** The key that every adapter sends. */
export const apiKey = 'bench-key';

/** The only tool, as a model is told of it. */
export const lookup = {
  name: 'lookup',
  description: 'Looks up the weather of a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, day: { type: 'number' } },
    required: ['city', 'day'],
  },
} as const;

/** What the tool says. */
export const weatherOf = (city: string, day: number): string =>
  `12 degrees in ${city} on day ${day}`;

/** Runs the tool by hand, on the text of its arguments: nothing is validated. */
export const runLookup = async (json: string): Promise<string> => {
  const { city, day } = readArguments(json);
  return Promise.resolve(weatherOf(city, day));
};

// `JSON.parse` gives what the compiler knows nothing of: by hand, people believe the model.
const readArguments: (json: string) => { readonly city: string; readonly day: number } = JSON.parse;
