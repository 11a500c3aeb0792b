// The smallest agent: a model and a question.
import { createAgent, textOf } from '@millrace/core';
import { embedded } from '@millrace/embedded';

const agent = createAgent({ name: 'hello', model: embedded() });

agent.call$('Hello! What are you?').subscribe((reply) => {
  console.log(textOf(reply));
  console.log(`(${reply.reason} after ${reply.iterations} iteration)`);
});
