create schema if not exists spillway;
set search_path = spillway, public;
