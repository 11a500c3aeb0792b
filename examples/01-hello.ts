// The smallest agent: a model and a question.
import { createAgent, textOf } from 'millrace';
import { demoModel } from '@millrace/demo-model';

const agent = createAgent({ name: 'hello', model: demoModel() });

agent.call$('Hello! What are you?').subscribe((reply) => {
  console.log(textOf(reply));
  console.log(`(${reply.reason} after ${reply.iterations} iteration)`);
});
