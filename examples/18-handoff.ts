// A conversation moves between agents; in a session, the next message goes to who had it last.
import { createAgent, text as textIn } from 'millrace';
import { sessions } from 'millrace/sessions';
import { handoff } from 'millrace/teams';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { toArray } from 'rxjs';

// The models say what is written here, so that this runs offline: put your own model in their places.
const porter = scriptedModel([
  text('One moment, I get the miller. '),
  toolCall('transfer_to_miller', { reason: 'They ask for a price.' }),
]);
const miller = scriptedModel([text('A sack is twelve crowns.')], [text('Ten, for you.')]);

const desk = handoff({
  name: 'desk',
  agents: [
    {
      agent: createAgent({ name: 'porter', model: porter }),
      description: 'Greets, and finds out who can help.',
    },
    {
      agent: createAgent({ name: 'miller', model: miller }),
      description: 'Knows flour and prices.',
    },
  ],
});

const chat = sessions(desk).open('user-42');
const ask = (question: string) =>
  chat
    .stream$(question)
    .pipe(textIn(), toArray())
    .subscribe((said) => console.log(`> ${question}\n${said.join('')}`));

ask('What is a sack of rye?');
ask('And for a regular?');
chat.memory.load$().subscribe(({ length }) => console.log(`${length} messages remembered`));
