// A course as its learners see it, for its author: one chunk of text at a time, as on a session's page. Nothing is sent.

import { chunks, followHistory } from "./player_chunks.js";

const section = document.querySelector("[data-step]");
chunks(section, { isNew: true, moved: false });
followHistory(() => section);
