import { createAgent } from 'millrace';
import { type FaultServer, streamed, streamOf, wires } from '@millrace/fault-server';
import type { Subjects } from './subjects.js';

/** Has each vendor's SDK loaded, which takes longer than the silences that are measured later. */
export const warmUp = async (server: FaultServer, subjects: Subjects): Promise<void> => {
  for (const wire of wires) {
    const { url } = await server.play({ responses: [streamed(streamOf(wire, { text: 'Hi.' }))] });
    await createAgent({ model: subjects[wire](url) }).call('Hello!');
  }
};
