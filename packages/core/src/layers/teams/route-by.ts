import { catchError, map, of, type OperatorFunction } from 'rxjs';
import { createAgent } from '../../agent.js';
import { type Composable, composed, isStep, type OutOf, route } from '../../operators/compose.js';
import { runOf } from '../../call/callable.js';
import { isMillraceError, MillraceError, misuse } from '../../values/errors.js';
import type { Input } from '../../seams/input.js';
import { isRecord } from '../../values/json.js';
import type { Model } from '../../models/model.js';
import { checkOptions, isModel, isText, type Rule } from '../../values/options.js';
import { output } from '../output.js';
import { jsonSchema } from '../../schema/index.js';

/** One of the steps that a model may choose. */
export interface ModelRoute<AnyStep extends Composable = Composable> {
  readonly step: AnyStep;
  /** When it is the one to choose: the model is shown this beside its name. */
  readonly when: string;
}

/** How a model chooses. */
export interface RouteByOptions<Otherwise extends Composable = Composable> {
  /** The step for what fits none. Default: there is none, and such an input is an `invalidRequest` error. */
  readonly otherwise?: Otherwise;
  /** What the model is told before the list. Default: to choose what fits best, and not to answer. */
  readonly instructions?: string;
  /** What events call the agent that chooses. Default: `router`. */
  readonly name?: string;
}

const otherwiseName = 'otherwise';

const choose =
  'Choose who is to deal with what you are asked. Do not deal with it yourself: only say which of these fits best.';

/**
 * Composes steps of which a model chooses one for each input, by their names and descriptions: it is `route` with a call of an agent, below the one above like any other, that answers with one of the
 * names, and is corrected where it does not. What fits none, or cannot be decided in the end (the model gives no valid choice, or refuses), goes to `otherwise`, or is an `invalidRequest`
 * error; any other error of the model is an error of the whole. In an agent that `asAgent` makes of it, the step that was chosen speaks.
 */
export const routeBy = <
  const Routes extends Readonly<Record<string, ModelRoute>>,
  const Otherwise extends Composable = never,
>(
  model: Model,
  routes: Routes,
  options: RouteByOptions<Otherwise> = {},
): OperatorFunction<Input, OutOf<Routes[keyof Routes]['step']> | OutOf<Otherwise>> => {
  if (!isModel[0](model)) throw misuse(`routeBy() needs ${isModel[1]}, that chooses.`);
  checkOptions('routeBy()', options, rules);
  const { otherwise, name = 'router', instructions = choose } = options;
  const steps = stepsOf(routes);
  const choice = {
    type: 'object',
    properties: { route: { type: 'string', enum: [...steps.keys(), otherwiseName] } },
    required: ['route'],
    additionalProperties: false,
  } as const;
  const chooser = createAgent({
    name,
    model,
    instructions: `${instructions}\n\n${listed(routes)}`,
    use: [output(jsonSchema(choice))],
  });
  const chosen = route<Composable>((input, call) =>
    chooser.call$(input, call).pipe(
      map(({ output }) => output?.route),
      catchError((error: unknown) => {
        if (isNoChoice(error)) return of(undefined);
        throw error;
      }),
      map((choice = otherwiseName) => {
        const step = steps.get(choice) ?? otherwise;
        if (step === undefined) throw noneFits([...steps.keys()]);
        return step;
      }),
    ),
  );
  return composed(runOf(chosen));
};

const rules: Readonly<Record<keyof RouteByOptions, Rule>> = {
  otherwise: [isStep, 'an agent, a session or another step'],
  instructions: isText,
  name: isText,
};

const stepsOf = (routes: Readonly<Record<string, ModelRoute>>): ReadonlyMap<string, Composable> => {
  if (!isRecord(routes) || Object.keys(routes).length === 0) {
    throw misuse(
      "routeBy() needs routes by their names, such as { sales: { step: sales, when: 'Somebody wants to buy.' } }.",
    );
  }
  const entries = Object.entries(routes);
  const wrong = entries.find(([, given]) => !isRoute(given));
  if (wrong !== undefined) {
    throw misuse(
      `routeBy(): the route '${wrong[0]}' must be { step, when }: a step, and a text that says when to choose it.`,
    );
  }
  if (Object.hasOwn(routes, otherwiseName)) {
    throw misuse(
      `routeBy(): no route can be called '${otherwiseName}'. Give that step as the option 'otherwise'.`,
    );
  }
  return new Map(entries.map(([name, { step }]) => [name, step]));
};

const isRoute = (given: unknown): boolean =>
  isRecord(given) &&
  isStep(given['step']) &&
  typeof given['when'] === 'string' &&
  given['when'].trim() !== '';

const isNoChoice = (error: unknown): boolean =>
  isMillraceError(error) && (error.code === 'invalidResponse' || error.code === 'emptyAnswer');

const listed = (routes: Readonly<Record<string, ModelRoute>>): string =>
  [
    ...Object.entries(routes).map(([name, { when }]) => `- ${name}: ${when}`),
    `- ${otherwiseName}: None of these fits.`,
  ].join('\n');

const noneFits = (names: readonly string[]): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `routeBy(): the model has chosen none of the routes ${names.join(', ')}. The option 'otherwise' takes what fits none.`,
  );
