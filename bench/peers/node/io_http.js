// SPDX-License-Identifier: MIT
//
// The HTTP server of io_load, see io/load.cpp: `node io_http.js PORT BUFFER`.
'use strict';

const http = require('node:http');

const server = http.createServer((request, response) => {
  response.setHeader('content-type', 'text/plain; charset=utf-8');
  response.end('hello, world\n');
});
// As long as the others keep an idle connection.
server.keepAliveTimeout = 60_000;
server.listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 1024 }, () =>
  console.log(server.address().port));
