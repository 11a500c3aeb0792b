// Live inputs: a feature flag changes the prompt and the tools of an agent while a call runs.
import { createAgent, type Tool, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { liveInstructions, liveTools } from '@millrace/gateway';
import { BehaviorSubject } from 'rxjs';

const named = (name: string, run: () => string): Tool =>
  tool({ name, description: `Reads the ${name}.`, run });
const season$ = new BehaviorSubject('It is summer.');
const gauge = named('gauge', () => {
  // Winter comes while the tool runs: the next turn has another prompt, and other tools.
  season$.next('It is winter.');
  gauges$.next([named('thermometer', () => '-3 °C')]);
  return 'Low water.';
});
const gauges$ = new BehaviorSubject<readonly Tool[]>([gauge]);

const model = scriptedModel(
  [toolCall('gauge')],
  [toolCall('thermometer')],
  [text('It is frozen.')],
);
const agent = createAgent({
  model,
  use: [liveInstructions(season$, { at: 'turn' }), liveTools(gauges$, { at: 'turn' })],
});
const { text: answer } = await agent.call('Can we grind?');
for (const { system, tools = [] } of model.requests)
  console.log(system, tools.map(({ name }) => name).join());
console.log(answer);
// The layers have let go of their sources.
console.log(season$.observed, gauges$.observed);
