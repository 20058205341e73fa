// SPDX-License-Identifier: MIT
//
// The echo server of io_load, see io/load.cpp: `node io_echo.js PORT BUFFER`. Node chooses its
// buffers itself.
'use strict';

const net = require('node:net');

const server = net.createServer({ noDelay: true }, (socket) => {
  socket.on('data', (bytes) => socket.write(bytes));
  socket.on('error', () => socket.destroy());
});
server.listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 1024 }, () =>
  console.log(server.address().port));
