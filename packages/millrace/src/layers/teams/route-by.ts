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

export interface ModelRoute<AnyStep extends Composable = Composable> {
  readonly step: AnyStep;
  /** When to choose this route, for the model. */
  readonly when: string;
}

export interface RouteByOptions<Otherwise extends Composable = Composable> {
  /** The step for input that matches no route. Default: such input is an `invalidRequest` error. */
  readonly otherwise?: Otherwise | undefined;
  /** Instructions above the list of routes. Default: to choose the best one, and not to answer. */
  readonly instructions?: string | undefined;
  /** Name of the choosing agent in events. Default: `router`. */
  readonly name?: string | undefined;
}

const otherwiseName = 'otherwise';

const choose =
  'Choose who should handle the request. Do not handle it yourself: only state which of these fits best.';

/**
 * Routes each input to a step that a model chooses by name and description: a `route` with a call of an agent that
 * answers with a name and is corrected if it does not. Input that matches no route or gets no valid choice (invalid
 * answers, refusal) goes to `otherwise`, or is an `invalidRequest` error; other errors of the model are errors of the
 * whole. In `asAgent`, the chosen step streams the answer.
 */
export const routeBy = <
  const Routes extends Readonly<Record<string, ModelRoute>>,
  const Otherwise extends Composable = never,
>(
  model: Model,
  routes: Routes,
  options: RouteByOptions<Otherwise> = {},
): OperatorFunction<Input, OutOf<Routes[keyof Routes]['step']> | OutOf<Otherwise>> => {
  if (!isModel[0](model)) throw misuse(`routeBy() needs ${isModel[1]}, to choose a step.`);
  checkOptions('routeBy()', options, rules);
  const { otherwise, name = 'router', instructions = choose } = options;
  const steps = toSteps(routes);
  const choice = {
    type: 'object',
    properties: { route: { type: 'string', enum: [...steps.keys(), otherwiseName] } },
    required: ['route'],
    additionalProperties: false,
  } as const;
  const chooser = createAgent({
    name,
    model,
    instructions: `${instructions}\n\n${formatRoutes(routes)}`,
    use: [output(jsonSchema(choice))],
  });
  const chosen = route<Composable>((input, call) =>
    chooser.call$(input, call).pipe(
      map(({ output: answer }) => answer?.route),
      catchError((error: unknown) => {
        if (isNoChoice(error)) return of(undefined);
        throw error;
      }),
      map((picked = otherwiseName) => {
        const step = steps.get(picked) ?? otherwise;
        if (step === undefined) throw noRoute([...steps.keys()]);
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

const toSteps = (routes: Readonly<Record<string, ModelRoute>>): ReadonlyMap<string, Composable> => {
  if (!isRecord(routes) || Object.keys(routes).length === 0) {
    throw misuse(
      "routeBy() needs routes by name, such as { sales: { step: sales, when: 'The user wants to buy.' } }.",
    );
  }
  const entries = Object.entries(routes);
  const invalid = entries.find(([, given]) => !isRoute(given));
  if (invalid !== undefined) {
    throw misuse(
      `routeBy(): the route '${invalid[0]}' must be { step, when }: a step, and a string that describes when to choose it.`,
    );
  }
  if (Object.hasOwn(routes, otherwiseName)) {
    throw misuse(
      `routeBy(): no route can be named '${otherwiseName}'. Pass that step as the option 'otherwise'.`,
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

const formatRoutes = (routes: Readonly<Record<string, ModelRoute>>): string =>
  [
    ...Object.entries(routes).map(([name, { when }]) => `- ${name}: ${when}`),
    `- ${otherwiseName}: None of these fits.`,
  ].join('\n');

const noRoute = (names: readonly string[]): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `routeBy(): the model chose none of the routes ${names.join(', ')}. Set 'otherwise' for input that matches no route.`,
  );
